"""Where an operation is reported that Inductor does not generate."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from irscope.events.trace import Record
from irscope.findings.kinds import fallback
from irscope.findings.moment import Moment
from irscope.protocol import Kernel, Origin

SCRIPT = """\
y = x + 1
z = torch.sort(y, stable=True).values
w = y[order]
"""


def lines_of(tmp_path: Path, name: str, *lines: int) -> list[int]:
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    origins = tuple(Origin(str(file), line) for line in lines)
    kernel = Kernel(name, "extern", "0/0", "0/0/output-code", origins)
    moment = Moment(Record("", {}, "0/0", 0, ""), None, None, False)
    return [finding.range.start.line for finding in fallback.detect(moment, [kernel])]


def test_it_is_at_the_line_that_calls_it_not_at_those_of_its_arguments(tmp_path: Path) -> None:
    assert lines_of(tmp_path, "torch.ops.aten.sort.stable", 1, 2) == [2]


def test_it_is_at_all_lines_if_none_calls_it_by_its_name(tmp_path: Path) -> None:
    assert lines_of(tmp_path, "torch.ops.aten.index.Tensor", 1, 3) == [1, 3]


def test_what_the_script_asks_for_is_no_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With ``mode="lite"`` all operations are calls into PyTorch, but those that are marked."""
    monkeypatch.setitem(sys.modules, "torch._inductor.config", SimpleNamespace(fallback_by_default=True))
    assert lines_of(tmp_path, "torch.ops.aten.sort.stable", 1, 2) == []
