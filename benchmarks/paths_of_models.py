"""How much of what Inductor makes of models of six libraries has a path: an innermost line that is not torch's, and a module.

    python benchmarks/paths_of_models.py [--profile] [--reports FOLDER] [--python INTERPRETER] [LIBRARY…]

Each model is small, with random weights, and is trained for a step, on the GPU if there is one.  It is compiled itself,
inside a function of the user's with the loss, and inside a module of the user's with the loss.  Printed are the kernels
and library calls of the run, the share of these that have a line, that have a module, and that are only of the user's own
lines outside of modules, as a loss in a function: they have none.  With ``--profile`` the same shares of the time of kernels follow, and how far the sums of the trees are
from that at the worst level.  Without it, C++ kernels are generated and not compiled.  The goals are 0.99 of the kernels
and 0.98 of the time.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from irscope.driver.driver import RunSpec, execute
from irscope.driver.profiling import NotMeasured, profiled
from irscope.measures.tree import PathTree
from irscope.profiling.profile import Profile
from irscope.protocol import FileLines, Kernel, Report, to_json
from irscope.provenance import chain
from irscope.provenance.kernels import output_code_of
from irscope.store.store import Store
from irscope.usercode.user_files import is_package_file


@dataclass(frozen=True)
class Program:
    """A library's model: what makes `model` and `batch`, and the loss of a call as an expression of `net` and `batch`."""

    make: str
    loss: str
    itself: str = ""
    """How the model is compiled itself and trained for a step, if that is not by calling it."""
    measured: str = ""
    """The same where it is measured: what a Trainer compiles cannot be called again by itself."""


TEXT = "vocab_size=512, hidden_size=256, num_hidden_layers=2, num_attention_heads=4, intermediate_size=512"
PROGRAMS = {
    "transformers": Program(
        f"""\
from transformers import LlamaConfig, LlamaForCausalLM
model = LlamaForCausalLM(LlamaConfig({TEXT}, num_key_value_heads=2)).to(D)
batch = torch.randint(3, 500, (2, 64), device=D)
""",
        "net(input_ids=batch, labels=batch).loss",
    ),
    "timm": Program(
        """\
import timm
model = timm.create_model("vit_tiny_patch16_224", img_size=64, depth=2, num_classes=10).to(D)
batch = torch.randn(4, 3, 64, 64, device=D), torch.randint(10, (4,), device=D)
""",
        "torch.nn.functional.cross_entropy(net(batch[0]), batch[1])",
    ),
    "diffusers": Program(
        """\
from diffusers import UNet2DModel
model = UNet2DModel(sample_size=16, block_out_channels=(32, 64), norm_num_groups=8,
                    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
                    up_block_types=("AttnUpBlock2D", "UpBlock2D"), layers_per_block=1).to(D)
batch = torch.randn(2, 3, 16, 16, device=D), torch.tensor(7, device=D)
""",
        "torch.nn.functional.mse_loss(net(batch[0], batch[1]).sample, batch[0])",
    ),
    "torchvision": Program(
        """\
import torchvision
model = torchvision.models.resnet18(num_classes=10).to(D)
batch = torch.randn(4, 3, 64, 64, device=D), torch.randint(10, (4,), device=D)
""",
        "torch.nn.functional.cross_entropy(net(batch[0]), batch[1])",
    ),
    "lightning": Program(
        """\
import logging, lightning, warnings
warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.LayerNorm(128))
        self.head = torch.nn.Linear(128, 10)

    def forward(self, x):
        return self.head(self.body(x))

    def training_step(self, batch, number=0):
        x, y = batch
        return torch.nn.functional.cross_entropy(self(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

model = Classifier().to(D)
batch = torch.randn(32, 64, device=D), torch.randint(10, (32,), device=D)
""",
        "net.training_step(batch)",
        """\
data = torch.utils.data.TensorDataset(*(one.cpu() for one in batch))
trainer = lightning.Trainer(max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
                            enable_model_summary=False, accelerator="auto", devices=1)
trainer.fit(torch.compile(model), torch.utils.data.DataLoader(data, batch_size=16))
""",
        "torch.compile(model.training_step)(batch).backward()\n",
    ),
    "PyG": Program(
        """\
from torch_geometric.nn import GAT
model = GAT(16, 32, num_layers=2, out_channels=4, heads=2).to(D)
batch = torch.randn(64, 16, device=D), torch.randint(64, (2, 256), device=D), torch.randint(4, (64,), device=D)
""",
        "torch.nn.functional.cross_entropy(net(batch[0], batch[1]), batch[2])",
    ),
}
PROLOGUE = """\
import torch
D = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
"""
NOT_COMPILED = """\
from torch._inductor.async_compile import AsyncCompile
AsyncCompile.cpp_pybinding = lambda *_: lambda *_: None
"""
FORMS = {
    "itself": """\
net = torch.compile(model)
({loss}).backward()
""",
    "in a function": """\
net = model

@torch.compile
def step(batch):
    return {loss}

step(batch).backward()
""",
    "in a module": """\
class Training(torch.nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, batch):
        net = self.net
        return {loss}

torch.compile(Training(model))(batch).backward()
""",
}


def main() -> None:
    """Measures the programs one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--reports", type=Path, help="where the JSON of reports and profiles goes")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("libraries", nargs="*", metavar="LIBRARY", default=[*PROGRAMS])
    options = parser.parse_args()
    print(f"{'':28}kernels    line  module outside" + "      ms    line  module outside   sums" * options.profile)
    for library in options.libraries:
        for form in FORMS:
            with tempfile.TemporaryDirectory() as folder:
                print(_measured(library, form, Path(folder), options), flush=True)


def script_of(library: str, form: str, profile: bool) -> str:
    """The program of one line of the table."""
    program = PROGRAMS[library]
    own = (program.measured if profile else program.itself) if form == "itself" else ""
    step = own or FORMS[form].format(loss=program.loss)
    return PROLOGUE + ("" if profile else NOT_COMPILED) + program.make + step


def _measured(library: str, form: str, folder: Path, options: argparse.Namespace) -> str:
    name = f"{library} {form}"
    script = folder / f"{name.replace(' ', '_')}.py"
    script.write_text(script_of(library, form, options.profile))
    spec = RunSpec(str(script), python=options.python, cwd=str(folder), profile=10 if options.profile else 0)
    said: list[str] = []
    found = None
    with Store(str(folder / "runs.db")) as store:
        if options.profile:
            try:
                run, _, found = profiled(spec, store)
            except NotMeasured as error:
                return f"{name:28}{error}"
        else:
            run, _ = execute(spec, store, on_output=lambda _, text: said.append(text))
        report = store.report(run)
    if options.reports:
        _kept(options.reports / f"{script.stem}.json", report, found)
    if not report.kernels:
        return f"{name:28}{report.outcome.message} {''.join(said)[-800:]}"
    shares = _shares((kernel, 1.0) for kernel in report.kernels)
    return f"{name:28}{len(report.kernels):7}{shares}" + (_of_time(report, found) if found else "")


def _shares(weighed: Iterable[tuple[Kernel | None, float]]) -> str:
    """The shares of what has a line, a module, and neither a module nor a line in a library."""
    shares = [0.0, 0.0, 0.0]
    rows = list(weighed)
    whole = math.fsum(weight for _, weight in rows)
    for kernel, weight in rows:
        if kernel is None:
            continue
        has_module = bool(kernel.module or kernel.module_class)
        own = not has_module and bool(kernel.lines) and not any(map(_is_library, kernel.lines))
        for column, has in enumerate((kernel.innermost is not None, has_module, own)):
            shares[column] += weight / whole * has
    return "".join(f"{share:8.3f}" for share in shares)


def _is_library(lines: FileLines) -> bool:
    return is_package_file(lines.file)


def _of_time(report: Report, found: Profile) -> str:
    """The shares of the time of kernels."""
    codes = chain.codes_by_folder(stage for compile in report.compiles for stage in compile.stages)
    kernels = {(kernel.name, output_code_of(codes, kernel)): kernel for kernel in report.kernels}
    rows = [(kernels.get((row.name, row.stage)), row.seconds) for row in found.kernels]
    sums = max(_off(tree, found.device_seconds) for tree in (found.by_module, found.by_frame))
    return f"{1e3 * found.device_seconds:7.3f}{_shares(rows)}  {sums:.0e}"


def _off(tree: PathTree, whole: float) -> float:
    """The largest difference of a node and the nodes inside it, in shares of all."""
    least = [node.exclusive[0] for node in tree.nodes]
    for node in tree.nodes:
        if node.parent >= 0:
            least[node.parent] += node.inclusive[0]
    wrong = [abs(node.inclusive[0] - sums) for node, sums in zip(tree.nodes, least, strict=True)]
    return max(*wrong, abs(tree.nodes[0].inclusive[0] - whole)) / whole


def _kept(path: Path, report: Report, found: Profile | None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"report": to_json(report), "profile": to_json(found) if found else None}))


if __name__ == "__main__":
    main()
