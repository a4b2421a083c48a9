"""Breaks and recompilations as failures of tests, in the test's own process: contexts, the mark, and what is left behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import REPOSITORY, run_plain_forked, write

TESTS = """\
import unittest
import pytest, torch
from irscope.testing import max_recompiles, no_graph_breaks

@torch.compile(backend="eager")
def cut(x):
    y = x.sin()
    print("hi")
    return y * 2

@torch.compile(backend="eager")
def whole(x):
    return x.sin() * 2

def sizes(f):
    for n in (3, 4, 5):
        f(torch.ones(n))

def test_context_fails():
    with no_graph_breaks():
        cut(torch.ones(3))

def test_context_sees_what_was_compiled_before():
    cut(torch.ones(3))
    with pytest.raises(AssertionError, match="max_graph_breaks allows 0"):
        with no_graph_breaks():
            cut(torch.ones(3))

def test_warm():
    whole(torch.ones(3))
    with max_recompiles(0):
        whole(torch.ones(3))
    with pytest.raises(AssertionError, match="size 3 → 4"):
        with max_recompiles(0):
            whole(torch.ones(4))

def test_own_error_is_kept():
    with pytest.raises(ValueError, match="own"):
        with no_graph_breaks():
            cut(torch.ones(3))
            raise ValueError("own")

def test_not_inside_of_another():
    with no_graph_breaks():
        with pytest.raises(RuntimeError, match="already"):
            with max_recompiles(0):
                pass

@pytest.mark.irscope(max_recompiles=0, max_graphs=1)
def test_mark_fails():
    sizes(whole)

@pytest.mark.irscope(max_recompiles=1, max_graphs=2)
def test_mark_holds():
    sizes(whole)

@pytest.mark.irscope
class TestBare(unittest.TestCase):
    def test_bare_fails(self):
        cut(torch.ones(3))

    def test_bare_holds(self):
        whole(torch.ones(3))

@pytest.mark.irscope
def test_ignored():
    @torch.compile(backend="eager")
    def noted(x):
        y = x.sin()
        print("hi")  # irscope: ignore[GB0059] shown on purpose
        return y * 2
    noted(torch.ones(3))

@pytest.mark.irscope(max_graph=1)
def test_misspelled_fails():
    pass
"""
MAIN = """\
import os, pytest, sys
for name in ("CI", "BUILD_NUMBER"):  # with these the summary has each message in full
    os.environ.pop(name, None)
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore", "--strict-markers", "test_it.py"]))
"""
LEFT = """\
import json, logging, sys
import torch, torch._dynamo
from torch._dynamo import convert_frame, trace_rules
from torch._logging import _internal
from irscope.testing import CompileCheckError, no_graph_breaks

class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(8, 8)
    def forward(self, x):
        y = torch.nn.functional.dropout(self.inner(x), 0.5)
        print("hi")
        return y.sin().sum()

def step():
    torch.manual_seed(0)
    model = Layer()
    loss = torch.compile(model, backend="aot_eager")(torch.ones(4, 8))
    loss.backward()
    return [loss.item(), *model.inner.weight.grad.flatten().tolist()], torch.rand(1).item()

def state():
    log = logging.getLogger("torch.__trace")
    return {
        "handlers": [*map(repr, log.handlers)], "logger": sorted(vars(log)), "trace log": repr(_internal.trace_log),
        "skipped": [*trace_rules.SKIP_DIRS], "hooks": len(convert_frame._bytecode_hooks),
        "loggers": {n: [len(l.handlers), l.level, sorted(vars(l))] for n, l in logging.Logger.manager.loggerDict.items()
                    if n.startswith("torch") and isinstance(l, logging.Logger)},
        "finders": [type(each).__name__ for each in sys.meta_path], "path": sys.path[:],
        "dynamo": {n: id(v) for m in (convert_frame, torch._dynamo.guards, torch._dynamo.eval_frame, _internal)
                   for n, v in vars(m).items() if callable(v)},
    }

plain = step()
torch.compiler.reset()
before = state()
try:
    with no_graph_breaks():
        seen = step()
    told = ""
except CompileCheckError as error:
    seen, told = step(), str(error)
after = state()
print(json.dumps({"same": seen == plain, "told": told, "changed": [key for key in before if before[key] != after[key]]}))
"""


def test_contexts_and_marks_in_a_real_session(tmp_path: Path) -> None:
    write(tmp_path, TESTS, "test_it.py")
    ran = run_plain_forked(write(tmp_path, MAIN), cwd=tmp_path)
    failed = [line.split(" - ")[0] for line in ran.stdout.splitlines() if line.startswith("FAILED")]
    assert failed == [
        "FAILED test_it.py::test_context_fails", "FAILED test_it.py::test_mark_fails",
        "FAILED test_it.py::TestBare::test_bare_fails", "FAILED test_it.py::test_misspelled_fails",
    ], ran.stdout  # fmt: skip
    assert ran.stdout.splitlines()[-1].startswith("4 failed, 7 passed")
    cut = f"{tmp_path / 'test_it.py'}:8:5: graph-break GB0059"
    assert ran.stdout.count(cut) == 2 and "→ Return what it shows and print it in the caller." in ran.stdout
    assert (
        "2 graphs; max_graphs allows 1.\n" in ran.stdout and "1 recompilation; max_recompiles allows 0.\n" in ran.stdout
    )
    assert "Did you mean max_graphs or max_graph_breaks?" in ran.stdout


def test_nothing_is_left_behind_and_numbers_are_the_same(tmp_path: Path) -> None:
    ran = run_plain_forked(write(tmp_path, LEFT))
    found = json.loads(ran.stdout.splitlines()[-1])
    assert found["same"] and found["changed"] == [], found
    assert "script.py:13:9: graph-break GB0059" in found["told"]


def test_a_session_without_the_mark_imports_nothing_of_it(tmp_path: Path) -> None:
    source = "import sys\ndef test():\n    assert not {n for n in sys.modules if n.startswith('irscope.')} - {'irscope.pytest_plugin'}\n"
    write(tmp_path, source, "test_it.py")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "--trace-config", "test_it.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert str(REPOSITORY / "compiler" / "irscope" / "pytest_plugin.py") in done.stdout


@pytest.mark.parametrize("limits", [{"max_graphs": -1}, {"max_graphs": True}, {"max_graphs": "1"}, {"max_kernels": 1}])
def test_bounds_that_are_refused(limits: dict[str, Any]) -> None:
    from irscope.testing import compile_bounds

    with pytest.raises(TypeError, match=r"whole number|irscope knows no bound"):
        compile_bounds(**limits)
