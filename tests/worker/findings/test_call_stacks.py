"""Which calls of the user's lead to a finding, where functions are cut into resume functions."""

from __future__ import annotations

from pathlib import Path

from irscope.worker.client import Worker
from support import run_captured, write

SCRIPT = """\
import torch

def chunk(h):
    print("in chunk")
    return h + 1

def loop(h):
    torch._dynamo.graph_break()
    for _ in range(2):
        h = chunk(h)
    return h

def recursive(h, *rest):
    if not rest:
        print("innermost")
        return h
    torch._dynamo.graph_break()
    return recursive(h, *rest[1:])

torch.compile(loop, backend="eager")(torch.randn(8))
torch.compile(recursive, backend="eager")(torch.randn(8), 5, 6)
"""


def test_a_function_is_named_once_for_all_its_resume_functions(tmp_path: Path, shared_worker: Worker | None) -> None:
    ran = run_captured(write(tmp_path, SCRIPT), tmp_path / "runs.db", worker=shared_worker)
    calls = {
        finding.range.start.line: [(related.range.start.line, related.message) for related in finding.related]
        for finding in ran.report.findings
        if finding.kind == "graph-break"
    }
    assert calls[4] == [(20, "called at module level"), (10, "called in `loop`")]
    assert calls[15] == [(21, "called at module level"), (18, "called in `recursive`")]
