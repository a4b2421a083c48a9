"""Five models for pipelines that take a whole program, and a count of the user's lines that reach a stage."""

from __future__ import annotations

from dataclasses import dataclass

from irscope.comparing.pipelines import figures_of
from irscope.pipelines.registry import stage_kind
from irscope.provenance import Provenance
from irscope.store.store import Store
from support import Ran

_START = """\
import torch

torch.manual_seed(0)
"""
_END = """
model = model.eval()
fast = torch.compile(model)
with torch.no_grad():
    expected, got = model(**inputs), fast(**inputs)
values = lambda found: found if isinstance(found, torch.Tensor) else found[0]
torch.testing.assert_close(values(got), values(expected))
print("agree", tuple(values(got).shape))
"""
MODELS = {
    "mlp": """
class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(8, 16), torch.nn.Linear(16, 4)

    def forward(self, x):
        return self.down(torch.relu(self.up(x))).softmax(-1)


model, inputs = Mlp(), dict(x=torch.randn(2, 8))
""",
    "conv": """
class Conv(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)

    def forward(self, x):
        h = torch.relu(self.norm(self.conv(x)))
        return torch.nn.functional.max_pool2d(h, 2).mean((2, 3))


model, inputs = Conv(), dict(x=torch.randn(2, 3, 8, 8))
""",
    "bert": """
import transformers as T

config = T.BertConfig(vocab_size=99, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
model, inputs = T.BertModel(config), dict(input_ids=torch.randint(3, 99, (2, 8)), return_dict=False)
""",
    "gpt2": """
import transformers as T

config = T.GPT2Config(vocab_size=99, n_embd=16, n_layer=1, n_head=2, use_cache=False)
model, inputs = T.GPT2Model(config), dict(input_ids=torch.randint(3, 99, (2, 8)), return_dict=False)
""",
    "vit": """
import transformers as T

config = T.ViTConfig(
    hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, image_size=8, patch_size=4
)
model, inputs = T.ViTModel(config), dict(pixel_values=torch.randn(2, 3, 8, 8), return_dict=False)
""",
}
_TRAINED = """
model = model.eval()
fast = torch.compile(model)
values = lambda found: found if isinstance(found, torch.Tensor) else found[0]
gradients = []
for program in (model, fast):
    model.zero_grad()
    values(program(**inputs)).square().mean().backward()
    # AOTAutograd gives a parameter that is not used zeros, and eager mode nothing.
    found = {name: one.grad for name, one in model.named_parameters()}
    gradients.append({name: 0 * one if found[name] is None else found[name] for name, one in model.named_parameters()})
assert sum(bool(one.any()) for one in gradients[0].values()) > 2
torch.testing.assert_close(gradients[1], gradients[0])
print("agree", len(gradients[0]))
"""
SCRIPTS = {name: _START + text + _END for name, text in MODELS.items()}
"""Each compares what its model gives with what the program in its place gives, and fails where they differ."""
TRAINING_SCRIPTS = {name: _START + text + _TRAINED for name, text in MODELS.items()}
"""Each compares the gradients of its parameters in the same way.  Nothing is dropped out, so that they can be compared."""


def lines_kept(ran: Ran, stage: str) -> tuple[int, int]:
    """How many of the operations of a graph stage lead to a line of a model's file, and how many there are.

    A line of PyTorch's own modules does not count.
    """
    with Store(ran.store) as store:
        return _lines_kept(Provenance(store, ran.report), stage)


def _lines_kept(found: Provenance, stage: str) -> tuple[int, int]:
    calls = [item.element for item in found.items(stage).items if item.op == "call"]
    kept = [one for one in calls if any("/torch/" not in line.file for line in found.origins(one))]
    return len(kept), len(calls)


@dataclass(frozen=True)
class Reached:
    """The operators that a pipeline captured, by whether they are in the lowest level that it shows, or in a library call.

    Args:
        dropped: Of those that are not, and need not be, the reasons that are known: folded, dead, a view.
        lost: Names of those of which nothing is known below.
        lineless: How many of the captured ones have no line of a model's file.
    """

    captured: int
    taken: int
    dropped: tuple[str, ...]
    lost: tuple[str, ...]
    lineless: int

    @property
    def share(self) -> float:
        """Of the operators that are still computed there, those that arrive, with a line of the user's."""
        return (self.taken - self.lineless) / (self.captured - len(self.dropped))


def reached(ran: Ran) -> Reached:
    """Which operators of a run reach the lowest level of its pipeline, as ``irscope compare`` counts them."""
    with Store(ran.store) as store:
        found = figures_of(store, ran.report, ran.report.pipeline, "", {})
        thread = Provenance(store, ran.report)
        stages = [stage for compile in ran.report.compiles for stage in thread.pipeline(compile.id)]
        counts = [_lines_kept(thread, stage.id) for stage in stages if stage_kind(stage.name).is_captured]
    assert found.operators.value and found.taken.value is not None, found.operators.why
    lost = tuple(one.what for one in found.gone if not one.why)
    dropped = tuple(one.why for one in found.gone if one.why)
    lineless = sum(calls - kept for kept, calls in counts)
    return Reached(int(found.operators.value), int(found.taken.value), dropped, lost, lineless)
