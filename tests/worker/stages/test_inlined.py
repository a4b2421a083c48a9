"""Which functions were compiled: also those that only call others, in every module that a compile walked through."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from irscope.internals import inlined
from irscope.store.store import Store
from support import Ran, run_forked, write

HEADS = """\
import torch

class Head(torch.nn.Module):
    def forward(self, x):
        return pooled(x)

def pooled(x):
    return first(x, axis())

def axis():
    return 1

def first(x, dim):
    return x.select(dim, 0)

def unused(x):
    return x
"""
SCRIPT = """\
import torch
import heads

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = heads.Head()

    def forward(self, x):
        return self.finish(x)

    def finish(self, x):
        x = self.head(x)
        self.told(x)
        return last(x)

    def told(self, x):
        print("a break")

def last(x):
    return (lambda y: y + 1)(x)

torch.compile(Model())(torch.ones(2, 3))
"""


def functions_in(ran: Ran) -> dict[str, list[tuple[str, str]]]:
    """By compile, file and name."""
    found = {}
    with Store(ran.store) as store:
        for compile in ran.report.compiles:
            for stage in compile.stages:
                if stage.name == "modified-bytecode":
                    data = store.stage_data(ran.report.run, stage.id)
                    found[compile.function] = [(Path(file).name, name) for file, _, name in data["functions"]]
        assert {Path(file).name for file in store.sources(ran.report.run)} >= {"script.py", "heads.py"}
    return found


def test_functions_that_only_call_others(tmp_path: Path) -> None:
    write(tmp_path, HEADS, "heads.py")
    ran = run_forked(write(tmp_path, SCRIPT), tmp_path / "runs.db", "fast")
    assert ran.report.capture_gaps == ()
    found = functions_in(ran)
    inside = [("heads.py", name) for name in ("axis", "first", "pooled", "forward")]
    assert {("script.py", "finish"), *inside} <= set(found["finish"])
    everything = {each for functions in found.values() for each in functions}
    assert {("script.py", "last"), ("script.py", "<lambda>")} <= everything
    assert not {"unused", "__init__"} & {name for _, name in everything}


def test_of_torch_and_of_python_itself_none_is_told() -> None:
    codes = [write.__code__, subprocess.run.__code__, pytest.main.__code__]
    names = [name for _, _, name in inlined.functions_of([*codes, *codes])]
    assert names == ["write", "main"]


def test_the_text_of_a_package_s_file_is_kept_where_kernels_come_from_it(tmp_path: Path) -> None:
    """Who opens it asks for its kernels: that they are of this text has to be known."""
    text = "def scaled(x):\n    return x.sin() * 2\n"
    package = write(tmp_path, text, "site-packages/layers.py")
    write(tmp_path, "import layers\n\ndef model(x):\n    return layers.scaled(x)\n", "site-packages/models.py")
    script = write(tmp_path, "import torch, models\ntorch.compile(models.model)(torch.ones(4))\n")
    ran = run_forked(script, tmp_path / "runs.db", "deep", env={"PYTHONPATH": str(package.parent)})
    (kernel,) = ran.kernels("cpp")
    assert {origin.file for origin in kernel.origins} == {str(package)}
    with Store(ran.store) as store:
        assert store.sources(ran.report.run)[str(package)] == text
