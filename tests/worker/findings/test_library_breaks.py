"""Graph breaks inside of a library: at the user's call, and still to be told apart."""

from __future__ import annotations

import os
from pathlib import Path

from support import run_captured, write

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
import torch
import noisy

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
    script = write(tmp_path, SCRIPT)
    env = {**os.environ, "PYTHONPATH": str(library.parent)}
    ran = run_captured(script, tmp_path / "runs.db", env=env)
    breaks = {finding.range.start.line: finding for finding in ran.findings("graph-break")}
    assert set(breaks) == {6, 10, 11}
    lines = {finding.file for finding in breaks.values()}
    assert lines == {str(script)}
    causes = [place.range.start.line for place in breaks[6].related if place.message.startswith("the cause lies here")]
    assert causes == [5, 7]
    assert breaks[6].explanation.endswith(
        "Another cause below the same call: `torch._dynamo.graph_break()  # @second` (noisy.py:7)."
    )
    for finding in breaks.values():
        assert finding.related[0].file == str(library)
