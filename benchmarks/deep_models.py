"""Six small real models with random weights, as scripts that `torch.compile` takes through Inductor.

Three only answer, three are trained for two steps, so that there are joint, forward and backward graphs; one of them is
called with two lengths, so that it is compiled again with symbolic sizes.
"""

from __future__ import annotations

from pathlib import Path

_TEXT = "vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37"
_IMAGES = "torch.randn(2, 3, 64, 64)"
_ANSWER = """\
import torch
import transformers as T

torch.manual_seed(0)
model = torch.compile({make}.eval())
for inputs in ({inputs},):
    with torch.no_grad():
        model(**inputs)
"""
_TRAIN = """\
import torch
import transformers as T

torch.manual_seed(0)
model = {make}.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


@torch.compile
def loss_of(inputs):
    return {loss}


for inputs in ({inputs},):
    optimizer.zero_grad()
    loss_of(inputs).backward()
    optimizer.step()
"""


def _ids(*lengths: int, labels: bool = False) -> str:
    """Keyword arguments of a language model, one set for each length."""
    texts = [f"torch.randint(3, 99, (2, {length}))" for length in lengths]
    return ", ".join(
        f"dict(input_ids={text}, labels={text})" if labels else f"dict(input_ids={text})" for text in texts
    )


SCRIPTS = {
    "bert": _ANSWER.format(make=f"T.BertModel(T.BertConfig({_TEXT}))", inputs=_ids(8, 12)),
    "llama": _ANSWER.format(make=f"T.LlamaForCausalLM(T.LlamaConfig({_TEXT}, num_key_value_heads=2))", inputs=_ids(8)),
    "vit": _ANSWER.format(
        make="T.ViTModel(T.ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37, "
        "image_size=64))",
        inputs=f"dict(pixel_values={_IMAGES})",
    ),
    "gpt2-training": _TRAIN.format(
        make="T.GPT2LMHeadModel(T.GPT2Config(vocab_size=99, n_embd=32, n_layer=2, n_head=4))",
        loss="model(**inputs).loss",
        inputs=_ids(8, 8, labels=True),
    ),
    "resnet-training": _TRAIN.format(
        make="T.ResNetForImageClassification(T.ResNetConfig(embedding_size=16, hidden_sizes=[16, 32, 64, 64], "
        "depths=[2, 2, 2, 2], layer_type='basic', num_labels=10))",
        loss="model(**inputs).logits.square().mean()",
        inputs=f"dict(pixel_values={_IMAGES}), dict(pixel_values={_IMAGES})",
    ),
    "t5-training": _TRAIN.format(
        make="T.T5ForConditionalGeneration(T.T5Config(vocab_size=99, d_model=32, d_kv=8, d_ff=37, num_layers=2, "
        "num_heads=4, decoder_start_token_id=0))",
        loss="model(**inputs).loss",
        inputs=_ids(8, 8, labels=True),
    ),
}


ALMOST_NOTHING = "almost-nothing"
_ALMOST_NOTHING = """\
import torch

print(torch.compile(lambda x: x + 1)(torch.ones(3)).sum())
"""


def write(folder: Path, names: list[str], device: str = "cpu") -> dict[str, Path]:
    """Writes the scripts of these names into a folder, with the device on which all of it happens."""
    paths = {name: folder / f"{name.replace('-', '_')}.py" for name in names}
    for name, path in paths.items():
        text = _ALMOST_NOTHING if name == ALMOST_NOTHING else SCRIPTS[name]
        placed = f"import torch\n\ntorch.set_default_device({device!r})\n" if device != "cpu" else "import torch\n"
        path.write_text(text.replace("import torch\n", placed, 1))
    return paths
