"""Graph breaks inside of a library: at the user's call, and still to be told apart."""

from __future__ import annotations

from pathlib import Path

from irscope.protocol import RelatedRole
from support import run_forked, write

LIBRARY = """\
import torch

def report(x):
    y = x * 2
    torch._dynamo.graph_break()  # @first
    y = y + 1
    torch._dynamo.graph_break()  # @second
    return y
"""

SCRIPT = """\
import sys; sys.path.append({path!r})
import torch, noisy

@torch.compile
def once(x):
    return noisy.report(x) - 1

@torch.compile
def on_two_lines(x):
    y = noisy.report(x)
    return noisy.report(y)

once(torch.ones(3))
on_two_lines(torch.ones(4))
"""


def test_two_causes_below_one_call_and_one_cause_below_two(tmp_path: Path) -> None:
    library = write(tmp_path, LIBRARY, "site-packages/noisy.py")
    script = write(tmp_path, SCRIPT.format(path=str(library.parent)))
    ran = run_forked(script, tmp_path / "runs.db")
    breaks = {finding.range.start.line: finding for finding in ran.findings("graph-break")}
    assert set(breaks) == {6, 10, 11}
    lines = {finding.file for finding in breaks.values()}
    assert lines == {str(script)}
    causes = [place.range.start.line for place in breaks[6].related if place.role is RelatedRole.CAUSE]
    assert causes == [5, 7]
    assert breaks[6].explanation.endswith(
        "Another cause below the same call: `torch._dynamo.graph_break()  # @second` (noisy.py:7)."
    )
    for finding in breaks.values():
        assert finding.related[0].file == str(library)


LOCKED = """\
import threading
import torch

lock = threading.Lock()

def locked(x):
    y = x * 2
    with lock:  # @locked
        y = y + 1
    return y

def decided(x):
    if x.sum() > 0:  # @decided
        return x + 1
    return x - 1

def scaled(x):
    return x * x.sum().item()  # @scaled

def said(x):
    print("shape", x.shape)  # @said
    return x + 1
"""

CALLS = """\
import sys; sys.path.append({path!r})
import torch, locking

locked = torch.compile(locking.locked, backend="eager")
with torch.no_grad():
    locked(torch.ones(3))

decided = torch.compile(locking.decided, backend="eager")
if decided(torch.ones(3)).sum() > 0:
    said = torch.compile(locking.said, backend="eager")
    said(torch.ones(3))

@torch.compile(backend="eager")
def inside(x):
    if locking.scaled(x).sum() > 2 and x.dim() == 1:
        return x
    return x + 1

inside(torch.ones(3))
"""


def test_the_users_syntax_at_the_call_is_not_blamed(tmp_path: Path) -> None:
    """A ``with``, an ``if`` or a statement around the call says nothing of what breaks inside of the library."""
    library = write(tmp_path, LOCKED, "site-packages/locking.py")
    script = write(tmp_path, CALLS.format(path=str(library.parent)))
    ran = run_forked(script, tmp_path / "runs.db")
    lines = {mark: number for number, line in enumerate(LOCKED.split("\n"), 1) for mark in line.split("# @")[1:]}
    found = {
        finding.range.start.line: finding for finding in ran.findings("graph-break") if "GB0170" not in finding.code
    }
    place = "runs code of a library, and there"
    assert f"`locked(torch.ones(3))` {place} `with lock:` cannot be entered" in found[6].message
    assert f"(locking.py, line {lines['locked']})" in found[6].message
    assert f'`said(torch.ones(3))` {place} `print("shape", x.shape)` writes while tracing' in found[11].message
    assert f"`locking.scaled(x)` {place} `x.sum().item()` needs the value of a tensor" in found[15].message
    (decided,) = (f for f in ran.findings("graph-break") if f.code == "GB0170" and f.range.start.line == 9)
    assert f"`decided(torch.ones(3))` {place} `if` needs the value of the tensor `x.sum() > 0`" in decided.message
    for finding in (*found.values(), decided):
        edits = [edit for fix in finding.fixes for edit in fix.edits]
        assert all("config" in edit.text for edit in edits), finding.fixes
        assert "nullcontext" not in str(finding.hints)
    assert [edit.text.strip() for fix in found[15].fixes for edit in fix.edits] == [
        "torch._dynamo.config.capture_scalar_outputs = True"
    ]
