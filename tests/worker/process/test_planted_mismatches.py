"""Mismatches planted between artifacts of five kinds and one run of a changed script: named before anything is loaded."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from irscope.ir.artifacts.kinds import kind_of, open_artifact
from irscope.opening import fitting
from irscope.opening.fitting import Fit, fit
from irscope.store.store import Store

SERVED = """\
import os

import torch

from parts import softened

SCALE = 2.0
WEIGHTS = [1.0, 2.0]
RANK = int(os.environ.get("RANK", "1"))


class Settings:
    scale = 2.0


def helper(x):
    return x.cosh() * 0.5


def with_power(power):
    def closed(x):
        return x.abs().sqrt() * power

    return closed


def a_same(x, y):
    return x.sin() + y.exp()


def a_size(x):
    return x.sin() * 2.0


def a_dtype(x):
    return x.cos() - 1.0


def a_stride(x):
    return x.exp() + 1.0


def a_global(x):
    return x.tanh() * SCALE


def a_helper(x):
    return helper(x) + 1.0


def a_edited(x):
    return x.sigmoid() - 3.0


def a_attribute(x):
    return x.erf() * Settings.scale


def a_default(x, k=2.0):
    return x.asin() * k


def a_dimensions(x):
    return x.acos() * 2.0


def a_list(x):
    return x.sinh() * WEIGHTS[0]


def c_matmul(x):
    return x @ x.t()


def c_grad(x):
    return x.expm1() * 2.0


def d_fusion(x):
    return x.asinh() * 2.0


def with_parts(parts):
    def repeated(x):
        for part in parts:
            x = x.atan() + part
        return x

    return repeated


class Scaled(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x):
        return x.erfc() * self.scale


def b_stride(x):
    return x.square() - x.asinh()


def c_same(x):
    return x.log1p() - 2.0


def c_size(x):
    return x.floor() + x


def c_config(x):
    return x.ceil() + x


def c_threads(x):
    return x.round() + x


def c_deterministic(x):
    return x.trunc() + x


def c_rank(x):
    return x.sinh() + float(RANK)


def d_same(x):
    return x.atan() - 4.0


def d_dtype(x):
    return x.relu() - x.sin()


def d_stride(x):
    return x.neg() * x.sin()


def d_other_file(x):
    return softened(x) - 0.5


def b_same(x):
    return x.square() - x.sin()


def b_size(x):
    return x.square() - x.cos()


def b_dtype(x):
    return x.square() - x.tan()


def b_edited(x):
    return x.square() - x.exp()


class Same(torch.nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.linear = torch.nn.Linear(128, width)

    def forward(self, x):
        return self.linear(x).relu()


class Sized(Same):
    def forward(self, x):
        return self.linear(x).sin()


class Typed(Same):
    def forward(self, x):
        return self.linear(x).cos()


class Wide(Same):
    def forward(self, x):
        return self.linear(x).exp()


class Deep(Same):
    def forward(self, x):
        return self.linear(x).square()


class FTyped(Same):
    def forward(self, x):
        return self.linear(x).floor()


class FSame(Same):
    def forward(self, x):
        return self.linear(x).tanh()


class FSized(Same):
    def forward(self, x):
        return self.linear(x).erf()


class FRanged(Same):
    def forward(self, x):
        return self.linear(x).abs()


class FEdited(Same):
    def forward(self, x):
        return self.linear(x).sigmoid() - 1.0
"""
PARTS = "def softened(x):\n    return x.clamp(-1.0, 1.0)\n"
MAKE = """\
import torch, torch._dynamo, served
from torch._inductor import standalone_compile
from torch.fx.experimental.proxy_tensor import make_fx
x = torch.randn(8, 128)
for name in ("c_same", "c_size", "c_config", "c_threads", "c_deterministic", "c_rank", "d_same", "d_dtype", "d_stride", "d_other_file", "c_matmul", "c_grad", "d_fusion"):
    torch.compile(getattr(served, name))(x)
torch.compile(served.with_parts([1.0, 2.0]))(x)
torch.compile(served.Scaled(2.0))(x)
torch.compile(served.with_power(2.0))(x)
with open("mega", "wb") as file:
    file.write(torch.compiler.save_cache_artifacts()[0])
torch._dynamo.reset()
for name in ("b_same", "b_size", "b_dtype", "b_edited", "b_stride"):
    graph = torch._dynamo.export(getattr(served, name))(x).graph_module
    standalone_compile(graph, [x], dynamic_shapes="from_example_inputs").save(path=name, format="binary")
for name in ("Same", "Sized", "Typed", "Wide", "Deep"):
    program = torch.export.export(getattr(served, name)(), (x,))
    torch._inductor.aoti_compile_and_package(program, package_path=f"{name}.pt2")
for name in ("FSame", "FSized", "FRanged", "FEdited", "FTyped"):
    shapes = {"x": {0: torch.export.Dim("batch", min=2, max=64)}} if name == "FRanged" else None
    torch.export.save(torch.export.export(getattr(served, name)(), (x,), dynamic_shapes=shapes), f"{name}.pt2")
torch._dynamo.reset()
torch._dynamo.config.enable_aot_compile = True
for name in ("a_same", "a_size", "a_dtype", "a_stride", "a_global", "a_helper", "a_edited", "a_attribute", "a_default", "a_dimensions", "a_list"):
    args = (x, x) if name == "a_same" else (x,)
    torch.compile(getattr(served, name), fullgraph=True).aot_compile((args, {})).save_compiled_function(name)
"""
CHANGED = (
    ("SCALE = 2.0", "SCALE = 3.0"),
    ("    scale = 2.0", "    scale = 5.0"),
    ("x.cosh()", "x.sinh()"),
    ("k=2.0", "k=3.0"),
    ("WEIGHTS = [1.0, 2.0]", "WEIGHTS = [4.0, 2.0]"),
    ("x.sigmoid() - 3.0", "x.sigmoid() - 4.0"),
    ("x.square() - x.exp()", "x.square() + x.exp()"),
    ("self.linear(x).sigmoid() - 1.0", "self.linear(x).sigmoid() + 1.0"),
)
USE = """\
import os
os.environ["RANK"] = "3"
import torch, torch._inductor.config, served
x = torch.randn(8, 128)
def run(f, *args):
    with torch.no_grad():
        torch.compile(f)(*args)
run(served.a_same, x, x)
run(served.a_size, torch.randn(8, 130))
run(served.a_dtype, x.double())
run(served.a_stride, torch.randn(128, 8).t())
for name in ("a_global", "a_helper", "a_edited", "a_attribute", "c_same", "c_rank", "d_same", "d_other_file", "b_same", "b_edited"):
    run(getattr(served, name), x)
run(served.c_size, torch.randn(9, 128))
with torch._inductor.config.patch(max_autotune=True):
    run(served.c_config, x)
threads = torch.get_num_threads()
torch.set_num_threads(threads + 2)
run(served.c_threads, x)
torch.set_num_threads(threads)
torch.use_deterministic_algorithms(True)
run(served.c_deterministic, x)
torch.use_deterministic_algorithms(False)
run(served.with_power(3.0), x)
run(served.d_dtype, x.half())
run(served.d_stride, torch.randn(128, 8).t())
run(served.b_size, torch.randn(4, 128))
run(served.b_dtype, x.double())
run(served.Same(), x)
run(served.Sized(), torch.randn(4, 128))
run(served.Typed().double(), x.double())
run(served.Wide(32), x)
run(served.FSame(), x)
run(served.FSized(), torch.randn(4, 128))
run(served.FRanged(), torch.randn(65, 128))
run(served.FEdited(), x)
run(served.a_default, x)
run(served.a_dimensions, torch.randn(8))
run(served.a_list, x)
torch.set_float32_matmul_precision("high")
run(served.c_matmul, x)
torch.set_float32_matmul_precision("highest")
torch.compile(served.c_grad)(x.clone().requires_grad_())
with torch._inductor.config.patch(epilogue_fusion=False):
    run(served.d_fusion, x)
run(served.with_parts([1.0, 2.0, 5.0]), x)
run(served.Scaled(3.0), x)
run(served.b_stride, torch.randn(128, 8).t())
run(served.Deep(), torch.randn(2, 8, 128))
run(served.FTyped().double(), x.double())
"""
SIZE = "the size when it was made"
CASES: dict[str, tuple[str, str, str, str]] = {
    # the artifact, what is said, the file and a text of its line
    "function: size": ("a_size", f"`x`: {SIZE}: [8, 128]; now: [8, 130].", "served", "def a_size"),
    "function: dtype": ("a_dtype", "`x`: the dtype when it was made: torch.float32; now: torch.float64.", "served", "def a_dtype"),
    "function: stride": ("a_stride", "`x`: the strides when it was made: (128, 1); now: (1, 8).", "served", "def a_stride"),
    "function: global": ("a_global", "The global `SCALE` was 2.0 when it was made and is 3.0 now.", "served", "SCALE = "),
    "function: helper": ("a_helper", "`helper` has changed since it was made.", "served", "def helper"),
    "function: source": ("a_edited", "`a_edited` has changed since it was made.", "served", "def a_edited"),
    "function: class attribute": ("a_attribute", "was 2.0 when it was made and is 5.0 now", "served", "Settings.scale"),
    "mega: size": ("mega", "c_size: the size of argument 0 became [9, 128] (was [8, 128])", "served", "def c_size"),
    "mega: config": ("mega", "c_config: `torch._inductor.config.max_autotune` became True", "served", "def c_config"),
    "mega: threads": ("mega", "c_threads: `torch.get_num_threads()` became", "served", "def c_threads"),
    "mega: deterministic": ("mega", "c_deterministic: `deterministic_algorithms_settings` became", "served", "def c_deterministic"),
    "mega: rank": ("mega", "was 1.0 when it was made and is 3.0 now", "served", "float(RANK)"),
    "mega: closure": ("mega", "was 2.0 when it was made and is 3.0 now", "served", "* power"),
    "folder: dtype": ("cache", "d_dtype: the dtype of argument 0 became torch.float16", "served", "def d_dtype"),
    "folder: stride": ("cache", "d_stride: the strides of argument 0 became (1, 8)", "served", "def d_stride"),
    "folder: other file": ("cache", "`return x.clamp(-1.0, 1.0)` in `softened` has changed", "parts", "def softened"),
    "standalone: size": ("b_size", f"{SIZE}: [8, 128]; now: [4, 128].", "served", "def b_size"),
    "standalone: dtype": ("b_dtype", "the dtype when it was made: torch.float32; now: torch.float64.", "served", "def b_dtype"),
    "standalone: source": ("b_edited", "`return x.square() - x.exp()` in `b_edited` has changed", "served", "def b_edited"),
    "package: size": ("Sized.pt2", f"`input 0`: {SIZE}: [8, 128]; now: [4, 128].", "served", "linear(x).sin"),
    "package: dtype": ("Typed.pt2", "`input 0`: the dtype when it was made: torch.float32; now: torch.float64.", "served", "linear(x).cos"),
    "package: weights": ("Wide.pt2", f"`linear.weight`: {SIZE}: [16, 128]; now: [32, 128].", "served", "linear(x).exp"),
    "program: size": ("FSized.pt2", f"`x`: {SIZE}: [8, 128]; now: [4, 128].", "served", "linear(x).erf"),
    "program: range": ("FRanged.pt2", f"`x`: {SIZE}: [2..64, 128]; now: [65, 128].", "served", "linear(x).abs"),
    "program: source": ("FEdited.pt2", "`return self.linear(x).sigmoid() - 1.0` in `forward` has changed", "served", "linear(x).sigmoid"),
}  # fmt: skip
NEW: dict[str, tuple[str, str, str, str]] = {
    "function: default": ("a_default", "`a_default` has changed since it was made.", "served", "def a_default"),
    "function: dimensions": ("a_dimensions", f"`x`: {SIZE}: [8, 128]; now: [8].", "served", "def a_dimensions"),
    "function: list": ("a_list", "The global `WEIGHTS` was [1.0, 2.0] when it was made", "served", "WEIGHTS = "),
    "mega: matmul precision": ("mega", "c_matmul: `cuda_matmul_settings` became", "served", "def c_matmul"),
    "mega: grad": ("mega", "c_grad", "served", "def c_grad"),
    "folder: config": ("cache", "d_fusion: `torch._inductor.config.epilogue_fusion` became False", "served", "def d_fusion"),
    "folder: loop": ("cache", "The graph has aten.", "served", "x.atan() + part"),
    "mega: module attribute": ("mega", "was 2.0 when it was made and is 3.0 now", "served", "x.erfc() * self.scale"),
    "standalone: stride": ("b_stride", "the strides when it was made: (128, 1); now: (1, 8).", "served", "def b_stride"),
    "package: dimensions": ("Deep.pt2", f"`input 0`: {SIZE}: [8, 128]; now: [2, 8, 128].", "served", "linear(x).square"),
    "program: dtype": ("FTyped.pt2", "`x`: the dtype when it was made: torch.float32; now: torch.float64.", "served", "linear(x).floor"),
}  # fmt: skip
"""Found after the others; none of them was seen before the first run."""
SAME = ("a_same", "b_same", "Same.pt2", "FSame.pt2")
"""Artifacts that fit."""
FIT_IN_CACHE = ("c_same", "d_same")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with the artifacts of the script and a run of the changed script; the run's id."""
    folder = tmp_path_factory.mktemp("planted")
    (folder / "served.py").write_text(SERVED)
    (folder / "parts.py").write_text(PARTS)
    (folder / "make.py").write_text(MAKE)
    (folder / "use.py").write_text(USE)
    variables = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(folder / "cache")}
    subprocess.run([sys.executable, "make.py"], cwd=folder, env=variables, check=True, timeout=1800)
    text = SERVED
    for before, after in CHANGED:
        assert before in text
        text = text.replace(before, after, 1)
    (folder / "served.py").write_text(text)
    (folder / "parts.py").write_text(PARTS.replace("1.0)", "2.0)"))
    variables["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "other-cache")
    command = [sys.executable, "-m", "irscope", "run", "--lane", "deep", "use.py", "--json", "--store", "runs.db"]
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)["run"]


def _fit(folder: Path, run: str, name: str) -> Fit:
    path = str(folder / name)
    kind = kind_of(path)
    assert kind is not None
    with Store(str(folder / "runs.db")) as store:
        return fit(open_artifact(path, kind), store, run)


def _line(folder: Path, file: str, text: str) -> int:
    """The line of a text; for one in a method the line where its function begins, which a whole compile has."""
    lines = (folder / f"{file}.py").read_text().split("\n")
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.mark.nightly
def test_what_was_planted_is_named_at_its_line_and_no_more(made: tuple[Path, str]) -> None:
    folder, run = made
    fits: dict[str, Fit] = {}
    missed = {}
    for name, (artifact, said, file, text) in (CASES | NEW).items():
        found = fits.setdefault(artifact, _fit(folder, run, artifact))
        line = _line(folder, file, text)
        lines = {line, line - 1} if artifact.endswith(".pt2") else {line}
        if not any(
            said in one.what and one.line in lines and one.file.endswith(f"{file}.py") for one in found.differences
        ):
            missed[name] = [(one.what, one.line) for one in found.differences]
    assert missed == {}


@pytest.mark.nightly
def test_artifacts_that_fit_have_no_difference(made: tuple[Path, str]) -> None:
    folder, run = made
    for artifact in SAME:
        found = _fit(folder, run, artifact)
        assert found.differences == (), artifact
        assert any("the inputs of" in text for text in found.compared), artifact
    for name in FIT_IN_CACHE:
        first = _line(folder, "served", f"def {name}")
        for cache in ("mega", "cache"):
            found = _fit(folder, run, cache)
            assert f"the cache key of {name}" in found.compared
            assert not [
                one for one in found.differences if one.file.endswith("served.py") and one.line in (first, first + 1)
            ]


def _rewritten(source: Path, target: Path, metadata: dict[str, str]) -> Path:
    """A package as another machine makes it."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith("metadata.json"):
                data = json.dumps({**json.loads(data), **metadata}).encode()
            new.writestr(name, data)
    return target


MACHINES: dict[str, tuple[str, dict[str, Any], str]] = {
    # the artifact; what this machine has, or what the package was made for; what is said
    "function: other PyTorch": ("a_same", {"torch": "2.14.1+cpu"}, "PyTorch was 2.13.0+cpu when it was made and is 2.14.1+cpu here."),
    "program: other PyTorch": ("FSame.pt2", {"torch": "2.9.0+cu128"}, "PyTorch was 2.13.0+cpu when it was made and is 2.9.0+cu128 here."),
    "function: other CPU": ("a_same", {"flags": ("sse2",)}, "bits, which this processor does not have"),
    "mega: other CPU": ("mega", {"flags": ("sse2",)}, "bits, which this processor does not have"),
    "standalone: other CPU": ("b_same", {"flags": ("sse2",)}, "bits, which this processor does not have"),
    "package: other CPU": ("Same.pt2", {"AOTI_CPU_ISA": "AMX_TILE AVX512"}, "which this processor does not have"),
    "package: other GPU": ("Same.pt2", {"AOTI_COMPUTE_CAPABILITY": "90"}, "made for the compute capability 90, and this machine has no GPU"),
    "package: other machine": ("Same.pt2", {"AOTI_MACHINE": "aarch64"}, "machine was aarch64 when it was made"),
    "package: other system": ("Same.pt2", {"AOTI_PLATFORM": "win32"}, "platform was win32 when it was made"),
    "folder: other Triton": ("cache", {"triton": "3.9.0"}, "Triton was 3.7.1 when it was made and is 3.9.0 here."),
    "folder: other GPU": ("cache", {"triton": "3.7.1"}, "It was made for the GPU target cuda 90, and this machine has no GPU."),
}  # fmt: skip


@pytest.mark.nightly
def test_another_machine_or_version_is_named(made: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, _ = made
    entry = folder / "cache" / "triton" / "0" / "HASH"
    entry.mkdir(parents=True, exist_ok=True)
    facts = {"name": "triton_poi_fused_0", "target": {"backend": "cuda", "arch": 90}, "triton_version": "3.7.1"}
    (entry / "triton_poi_fused_0.json").write_text(json.dumps(facts))
    own_version, flags = (
        fitting._version,
        ("avx512f", "avx512dq", "avx512vl", "avx512bw", "avx512_vnni", "avx2", "fma", "sse2"),
    )
    monkeypatch.setattr(fitting, "has_gpu", lambda: False)
    missed = {}
    for name, (artifact, changed, said) in MACHINES.items():
        path = folder / artifact
        if any(key.startswith("AOTI") for key in changed):
            path = _rewritten(path, folder / "elsewhere.pt2", changed)
        versions = {key: value for key, value in changed.items() if key in ("torch", "triton")}
        monkeypatch.setattr(
            fitting, "_version", lambda package, known=versions: known.get(package, own_version(package))
        )
        known_flags = frozenset(changed.get("flags", flags))
        monkeypatch.setattr(fitting, "_flags", lambda known=known_flags: known)
        kind = kind_of(str(path))
        assert kind is not None
        words = [one.what for one in fit(open_artifact(str(path), kind)).differences]
        if not any(said in text for text in words):
            missed[name] = words
    assert missed == {}


LOADS = """\
import torch
from torch._inductor.standalone_compile import CompiledArtifact
model = torch._inductor.aoti_load_package("Same.pt2")
artifact = CompiledArtifact.load(path="b_same", format="binary")
model(torch.randn(8, 128))
artifact(torch.randn(8, 128))
try:
    artifact(torch.randn(8, 130))
except AssertionError:
    pass
try:
    model(torch.randn(8, 64))
except RuntimeError:
    pass
"""


@pytest.mark.nightly
def test_a_call_that_does_not_fit_a_loaded_artifact_is_a_finding(made: tuple[Path, str]) -> None:
    folder, _ = made
    (folder / "loads.py").write_text(LOADS)
    command = [sys.executable, "-m", "irscope", "run", "--lane", "fast", "loads.py", "--json", "--store", "loads.db"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1800)
    found = [one for one in json.loads(done.stdout)["findings"] if one["code"] == "loaded-artifact"]
    assert sorted((one["range"]["start"]["line"], one["message"]) for one in found) == [
        (8, f"The artifact `b_same` does not fit this call: `input 0`: {SIZE}: [8, 128]; now: [8, 130]."),
        (12, f"The artifact `Same.pt2` does not fit this call: `input 0`: {SIZE}: [8, 128]; now: [8, 64]."),
    ]
