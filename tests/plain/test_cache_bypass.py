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
    ("reason", "said", "hint"),
    [
        (
            "Unsupported call_function target while_loop. \n.",
            "Unsupported call_function target while_loop.",
            "No setting",
        ),
        ("Can't cache HigherOrderOperator: while_loop", "Can't cache HigherOrderOperator: while_loop.", "No setting"),
        (
            "Unsupported call_function target <function _jvp_increment_nesting at 0x7f768eb747c0>. \n.",
            "Unsupported call_function target <function _jvp_increment_nesting>.",
            "",
        ),
        (
            "Unsupported call_function target <function mine at 0x7>. \n.",
            "Unsupported call_function target <function mine>.",
            "Register custom operators",
        ),
    ],
)
def test_operators_of_pytorchs_own_need_no_registration(
    reason: str, said: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = SimpleNamespace(ops=SimpleNamespace(higher_order=SimpleNamespace(while_loop=1)))
    monkeypatch.setitem(sys.modules, "torch", torch)
    steps = SimpleNamespace(_jvp_increment_nesting=1)
    monkeypatch.setitem(sys.modules, "torch._functorch.predispatch", steps)
    payload = json.dumps({"cache_bypass_reason": reason})
    record = Record("aotautograd_cache_bypass", {}, "0/0", 0, payload)
    compile = Compile("0/0", "f", "/home/me/train.py", 1, CompileOutcome.COMPILED, 0, 1, 0.1)
    (finding,) = cache_bypass.detect(Moment(record, compile, None, False))
    assert finding.message.endswith(f": {said}")
    assert finding.explanation.endswith(said) and "0x" not in finding.explanation and "\n ." not in finding.explanation
    assert [each.startswith(hint) for each in finding.hints] == ([True] if hint else [])
