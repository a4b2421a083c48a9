"""What is said of a graph that PyTorch's caches cannot keep."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import pytest
from irscope.events.trace import Record
from irscope.findings.kinds import cache_bypass
from irscope.findings.moment import Moment
from irscope.protocol import Compile, CompileOutcome


@pytest.mark.parametrize(
    ("target", "has_hint"),
    [
        ("while_loop", False),
        ("<function _jvp_increment_nesting at 0x7f768eb747c0>", False),
        ("<function mine at 0x7>", True),
    ],
)
def test_operators_of_pytorchs_own_need_no_registration(
    target: str, has_hint: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = SimpleNamespace(ops=SimpleNamespace(higher_order=SimpleNamespace(while_loop=1)))
    monkeypatch.setitem(sys.modules, "torch", torch)
    steps = SimpleNamespace(_jvp_increment_nesting=1)
    monkeypatch.setitem(sys.modules, "torch._functorch.predispatch", steps)
    reason = json.dumps({"cache_bypass_reason": f"Unsupported call_function target {target}. \n."})
    record = Record("aotautograd_cache_bypass", {}, "0/0", 0, reason)
    compile = Compile("0/0", "f", "/home/me/train.py", 1, CompileOutcome.COMPILED, 0, 1, 0.1)
    (finding,) = cache_bypass.detect(Moment(record, compile, None, False))
    assert finding.message.endswith(f"Unsupported call_function target {target}.")
    assert bool(finding.hints) is has_hint
