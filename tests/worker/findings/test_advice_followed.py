"""Options that no edit can apply are followed by hand: the break goes away, and the result stays the same."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from advice_followed import ENTRIES, Followed
from advice_runs import Session, session
from support import run_forked, write


def _file(body: str, args: str) -> str:
    return f"import torch\n\n\n{textwrap.dedent(body).strip()}\n\n\nARGS = ({args})\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("followed")


@pytest.fixture(scope="module")
def runs(folder: Path) -> Session:
    paths = []
    for entry in ENTRIES:
        texts = {
            "broken": _file(entry.source, entry.args),
            "followed": _file(entry.followed, entry.followed_args or entry.args),
        }
        for state, text in texts.items():
            paths.append(folder / f"{state}_{entry.name}.py")
            paths[-1].write_text(text, encoding="utf-8")
    return session(folder, "followed", paths)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_followed(entry: Followed, folder: Path, runs: Session) -> None:
    broken, followed = (folder / f"{state}_{entry.name}.py" for state in ("broken", "followed"))
    found = [f for f in runs.report.findings if f.file == str(broken) and f.code == entry.code]
    assert found, [(f.code, f.message) for f in runs.report.findings if f.file == str(broken)]
    hints = "\n".join(hint for finding in found for hint in finding.hints)
    assert entry.hint in hints
    assert runs.codes(followed) == []
    assert runs.compiled(followed)
    if not runs.results[str(broken)].startswith("GuardOnDataDependentSymNode"):  # an error has no result to compare
        assert runs.results[str(followed)] == runs.results[str(broken)]


LOADER = """\
import torch
from torch.utils.data import DataLoader

loader = DataLoader(torch.arange(6.0).reshape(3, 2), batch_size=1)

"""
LOOPS = """\
@torch.compile(backend="eager")
def total(x):
    for batch in loader:
        x = x + batch.sin()
    return x

print(total(torch.ones(1, 2)))
"""
IN_THE_CALLER = """\
@torch.compile(backend="eager")
def add(x, batch):
    return x + batch.sin()

def total(x):
    for batch in loader:
        x = add(x, batch)
    return x

print(total(torch.ones(1, 2)))
"""


def test_a_loop_over_a_data_loader_is_moved_to_the_caller(tmp_path: Path) -> None:
    broken = run_forked(write(tmp_path, LOADER + LOOPS, "broken.py"), tmp_path / "broken.db")
    (finding,) = broken.findings("graph-break")
    assert finding.hints[0] == "Loop in the caller, and compile what is done with each element."
    followed = run_forked(write(tmp_path, LOADER + IN_THE_CALLER, "followed.py"), tmp_path / "followed.db")
    assert followed.report.findings == ()
    assert [compile.graph_ops for compile in followed.report.compiles] == [2]
    assert followed.stdout == broken.stdout != ""


HIDES_ANOTHER = """\
import torch

@torch.compile(backend="eager")
def steps(x):
    i = 2
    while i > 0:
        i -= 1
        x = x + 1
        torch._dynamo.graph_break()
        print("seen")
    return x

steps(torch.ones(2))
"""


def test_a_requested_break_hides_what_comes_after_it(tmp_path: Path) -> None:
    before = run_forked(write(tmp_path, HIDES_ANOTHER, "before.py"), tmp_path / "before.db")
    (finding,) = before.findings("graph-break")
    (hint,) = finding.hints
    assert hint == "Remove the line. Dynamo has not seen what comes after it: there may be more breaks."
    removed = HIDES_ANOTHER.replace("torch._dynamo.graph_break()", finding.fixes[0].edits[0].text)
    after = run_forked(write(tmp_path, removed, "after.py"), tmp_path / "after.db")
    (next_one,) = after.findings("graph-break")
    assert next_one.range.start.line == finding.range.start.line + 1
