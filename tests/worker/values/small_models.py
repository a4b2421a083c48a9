"""Small models with random weights, each compiled and called: ``small_models.py NAME [NAME=LOWERING NAME@DECOMPOSITION …]``.

``NAME=erf`` runs the model while Inductor's lowering of that operation is wrong by one per cent, which no user could see in
the results; ``NAME@gelu`` while its decomposition is.  ``NAME+`` has a training step.
"""

import sys
from collections.abc import Callable
from typing import Any

import torch
import torch._functorch.config
import torch._inductor.config
import torch._inductor.decomposition as decomposition
import torch._inductor.lowering as lowering

Model = tuple[torch.nn.Module, tuple[torch.Tensor, ...]]
"""A model and what it is called with."""


def mlp() -> Model:
    return torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 8)), (torch.randn(4, 16),)


def dropout() -> Model:
    layers = (
        torch.nn.Linear(16, 32),
        torch.nn.Dropout(0.3),
        torch.nn.Tanh(),
        torch.nn.Linear(32, 8),
        torch.nn.Softmax(-1),
    )
    return torch.nn.Sequential(*layers).train(), (torch.randn(4, 16),)


class Gated(torch.nn.Module):
    """Llama's MLP."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.up, self.down = (torch.nn.Linear(16, 16, bias=False) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.down(torch.nn.functional.silu(self.gate(x)) * self.up(x))
        return result


def gated() -> Model:
    return Gated(), (torch.randn(4, 16),)


class Attention(torch.nn.Module):
    """What the language models below have, without the rest."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.last = torch.nn.Embedding(64, 32), torch.nn.Linear(32, 64)

    def forward(self, ids: torch.Tensor) -> dict[str, torch.Tensor]:
        h = self.embed(ids)
        h = h + torch.nn.functional.scaled_dot_product_attention(h, h, h, is_causal=True)
        return {"logits": self.last(torch.tanh(h))}


def attention() -> Model:
    return Attention().eval(), (torch.randint(0, 64, (2, 8)),)


class InPlace(torch.nn.Module):
    """Its graph writes to a buffer after that was made."""

    def forward(self, x: torch.Tensor, index: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x = x + 1
        smallest, order = x.view(-1)[::2].sort()
        x[index] = 0.5
        return smallest, order, x.argmax(-1), torch.cat([x, x.flip(0)])


def inplace() -> Model:
    return InPlace(), (torch.randn(5, 6), torch.tensor([1, 3]))


def conv() -> Model:
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(8, 4, 3), torch.nn.Sigmoid(), torch.nn.Flatten(), torch.nn.Linear(36, 5),
    )  # fmt: skip
    return net.eval(), (torch.randn(2, 3, 10, 10),)


def bert() -> Model:
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=48,
        max_position_embeddings=32,
    )  # fmt: skip
    return BertModel(config).eval(), (torch.randint(0, 64, (2, 8)),)


def gpt2() -> Model:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=64, n_embd=32, n_layer=1, n_head=2, n_positions=32, use_cache=False)
    return GPT2LMHeadModel(config).eval(), (torch.randint(0, 64, (2, 8)),)


def llama() -> Model:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, use_cache=False, max_position_embeddings=32,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval(), (torch.randint(0, 64, (2, 8)),)


def wrong(name: str) -> Callable[[], object]:
    """Makes a lowering wrong; returns what makes it right again."""
    changed = {}
    for overload in lowering.lowerings:
        if isinstance(overload, torch._ops.OpOverload) and overload.name().partition(".")[0] == f"aten::{name}":
            original = changed[overload] = lowering.lowerings[overload]

            def off_by_one_per_cent(*args: Any, original: Callable[..., Any] = original, **kwargs: Any) -> Any:
                return lowering.mul(original(*args, **kwargs), 1.01)

            lowering.lowerings[overload] = off_by_one_per_cent
    assert changed, name
    return lambda: lowering.lowerings.update(changed)


def wrongly_decomposed(name: str) -> Callable[[], object]:
    """Makes a decomposition wrong, whatever it returns first; returns what makes it right again."""
    packet = getattr(torch.ops.aten, name)
    original = decomposition.decompositions[packet.default]

    def off_by_one_per_cent(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        return result * 1.01 if isinstance(result, torch.Tensor) else (result[0] * 1.01, *result[1:])

    decomposition.decompositions[packet.default] = off_by_one_per_cent
    decomposition.fast_random_decomps.cache_clear()
    return lambda: decomposition.decompositions.update({packet.default: original})


def main() -> None:
    for word in sys.argv[1:]:
        name, _, decomposed = word.partition("@")
        name, _, broken = name.partition("=")
        name, _, dtype = name.partition(":")
        trains, name = name.endswith("+") or name == "dropout", name.removesuffix("+")
        torch.manual_seed(0)
        model, inputs = globals()[name]()
        model.train(trains or model.training)
        if dtype:
            model = model.to(getattr(torch, dtype))
            inputs = tuple(each.to(getattr(torch, dtype)) if each.is_floating_point() else each for each in inputs)
        restore = wrong(broken) if broken else wrongly_decomposed(decomposed) if decomposed else lambda: None
        torch._dynamo.reset()
        compiled = torch.compile(model)
        result = compiled(*inputs) if trains else torch.no_grad()(compiled)(*inputs)
        if not isinstance(result, torch.Tensor):
            result = result[0] if isinstance(result, tuple) else next(iter(result.values()))
        if trains:
            result.square().sum().backward()
        restore()
        print(word, f"{result.float().sum().item():.6f}", f"{torch.rand(1).item():.6f}")


if any(mark in word for word in sys.argv[1:] for mark in "=@"):
    # The keys of these caches do not name a lowering: a later run would find a graph that was made with a wrong one.
    torch._inductor.config.fx_graph_cache = torch._functorch.config.enable_autograd_cache = False
main()
