"""A check inside of the graph raises another error, which a handler may not catch; and a decision may always go one way."""

from __future__ import annotations

import pytest
from irscope.comparing.texts import LineMatch
from irscope.driver.trials.proving import Proof, Status, Trial, _one_sided
from irscope.protocol import FoundEvidence, OneSided, Outcome, OutcomeKind
from irscope.usercode.caught_errors import caught_otherwise

SCRIPT = """\
def f(n):
    if n > 4:
        raise ValueError("too long")
    assert n
try:
    f(5)
except HANDLER:
    pass
"""
CHECKED = '    torch._check(n <= 4, lambda: "too long")\n'


@pytest.mark.parametrize(
    ("handler", "is_other"),
    [
        ("ValueError", True), ("(KeyError, ValueError)", True), ("RuntimeError", True), ("errors.Own", False),
        ("Exception", False), ("KeyError", False), ("AssertionError", False),
    ],
)  # fmt: skip
def test_an_error_that_is_caught_by_its_type_stays_that_error(handler: str, is_other: bool) -> None:
    old = SCRIPT.replace("HANDLER", handler)
    new = old.replace('    if n > 4:\n        raise ValueError("too long")\n', CHECKED)
    assert bool(caught_otherwise(old, new)) is is_other
    assert caught_otherwise(old, old.replace("pass", "print(1)")) == ""  # it is raised as before
    own = caught_otherwise(old.replace("ValueError(", "Own("), new)
    assert bool(own) is (handler not in ("Exception", "RuntimeError")), own


def test_an_assertion_counts() -> None:
    old = SCRIPT.replace("HANDLER", "AssertionError")
    assert "line 7 catches AssertionError" in caught_otherwise(old, old.replace("    assert n\n", ""))
    assert caught_otherwise(old, "not Python (") == ""


@pytest.mark.parametrize(("line", "status"), [(2, Status.UNPROVEN), (4, Status.VERIFIED)])
def test_a_changed_decision_must_have_gone_both_ways(line: int, status: Status) -> None:
    evidence = FoundEvidence(one_sided=(OneSided("a.py", line, False), OneSided("b.py", 2, True)))
    eager = Trial(Outcome(OutcomeKind.COMPLETED, 0, "", 0.1), (), (), ([], []), evidence)
    old = "def f(x):\n    if x.any():\n        x = x + 1\n    if x.all():\n        x = x - 1\n"
    new = old.replace("    if x.any():\n        x = x + 1\n", "    x = where(x.any(), x + 1, x)\n")
    proof = Proof(Status.VERIFIED, "").unless(_one_sided(eager, {"a.py": LineMatch(old, new)}))
    assert proof.status is status
    if status is Status.UNPROVEN:
        assert proof.reason == "What line 2 of a.py asks is false on all inputs that were tried."
