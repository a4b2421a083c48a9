"""What only leaves code to Python is the last fix of a finding, and not applied with others."""

from __future__ import annotations

import dataclasses
import time
from types import SimpleNamespace
from typing import Any

import pytest
from irscope.driver.fixing.candidates import Candidate, Tried
from irscope.driver.fixing.combining import combined, one_by_one
from irscope.driver.fixing.trying import Trying
from irscope.driver.trials.proving import Proof, Status
from irscope.fixing.proposals import THEN, chained
from irscope.protocol import Edit, Finding, Fix, FixMethod, Position, Range, Severity

PLACE = Range(Position(1, 0), Position(1, 1))
FINDING = Finding("graph-break", "GB0170", Severity.WARNING, "", "", (), None, "user.py", PLACE, 1, ())


class Prover:
    """Calls each text what it says of itself; removes the finding with each."""

    original = SimpleNamespace(compiles=(), findings=(FINDING,))

    def text_of(self, path: str) -> str:
        return "x\n"

    def prove(self, texts: dict[str, str], finding: Finding) -> tuple[Proof, Any]:
        (text,) = texts.values()
        status = next((one for one in Status if one.value in text), Status.VERIFIED)
        return Proof(status, "", (finding,)), SimpleNamespace(findings=(), compiles=())

    def both_sides(self, proof: Proof, before: dict[str, str], texts: dict[str, str]) -> Proof:
        return proof


def fix_of(what: str | FixMethod) -> Fix:
    title, method = (what.title, what) if isinstance(what, FixMethod) else (what, None)
    return Fix(title, "", (Edit(PLACE, title),), method=method)


def tried(*wanted: str | FixMethod) -> Tried:
    fixes = [fix_of(what) for what in wanted]
    prover: Any = Prover()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("irscope.driver.fixing.trying.proposals", lambda finding, text: fixes)
        return Trying(prover, 60).finding(FINDING)


@pytest.mark.parametrize("method", [method for method in FixMethod if not method.repairs])
def test_it_is_last_and_not_the_verified_one(method: FixMethod) -> None:
    one = tried(method, "unproven", "disproven")
    assert [each.fix.method for each in one.candidates] == [None, None, method]
    assert one.verified is None and one.left_to_python is not None and one.left_to_python.fix.method is method
    prover: Any = Prover()
    together = combined(Trying(prover, 60, with_rules=False), [one])
    assert (together.texts, together.fixed) == ({}, ())


def test_a_repair_is_applied() -> None:
    one = tried(FixMethod.FUNCTION_TO_PYTHON, "a repair")
    assert [each.fix.title for each in one.candidates] == ["a repair"]  # no other is tried after a verified one
    prover: Any = Prover()
    together = combined(Trying(prover, 60, with_rules=False), [one])
    assert (together.texts, together.fixed) == ({"user.py": "a repair\n"}, (FINDING,))


def test_fixes_that_go_together_need_one_trial_and_others_are_added_one_by_one() -> None:
    other = dataclasses.replace(FINDING, range=Range(Position(2, 0), Position(2, 1)))
    place = Range(Position(2, 0), Position(2, 1))

    class Together(Prover):
        def __init__(self, fails: str) -> None:
            self.seen: list[str] = []
            self.fails = fails

        def text_of(self, path: str) -> str:
            return "x\ny\n"

        def prove(self, texts: dict[str, str], finding: Finding) -> tuple[Proof, Any]:
            (text,) = texts.values()
            self.seen.append(text)
            status = Status.DISPROVEN if self.fails and self.fails in text else Status.VERIFIED
            removes = tuple(one for one, fixed in ((FINDING, "x" not in text), (other, "y" not in text)) if fixed)
            reason = "It fails." if status is Status.DISPROVEN else ""
            return Proof(status, reason, removes), SimpleNamespace(findings=(), compiles=())

    def fixed(fails: str, seconds: float = 60) -> tuple[Any, Any, list[str], list[str]]:
        prover: Any = Together(fails)
        proof = Proof(Status.VERIFIED, "")
        first = Tried(FINDING, (Candidate(Fix("a", "", (Edit(PLACE, "1"),)), "user.py", proof),))
        second = Tried(other, (Candidate(Fix("b", "", (Edit(place, "2"),)), "user.py", proof),))
        found = combined(Trying(prover, seconds, with_rules=False), [first, second])
        return found.texts, found.fixed, [found.why_left_out(one) for one in (FINDING, other)], prover.seen

    assert fixed("") == ({"user.py": "1\n2\n"}, (FINDING, other), ["", ""], ["1\n2\n"])
    why = "With the others it is disproven. It fails."
    alone = "1\ny\n"
    assert fixed("2") == ({"user.py": alone}, (FINDING,), ["", why], ["1\n2\n", "1\n2\n", alone])
    late = "There was no time left to try it with the others."
    assert fixed("", -1) == ({"user.py": alone}, (FINDING,), ["", late], [])


ALONE = Proof(Status.UNPROVEN, "", (), (FINDING,))


@pytest.mark.parametrize(
    ("undone", "second", "fixed"),
    [
        pytest.param(False, None, ("x", "other"), id="in the changed text"),
        pytest.param(True, None, ("x",), id="undoes the first"),
        pytest.param(False, ALONE, ("x", "other"), id="leads to another finding by itself"),
        pytest.param(False, dataclasses.replace(ALONE, adds=()), ("x",), id="is not proven by itself"),
    ],
)
def test_what_overlaps_is_proposed_again_in_the_changed_text(
    undone: bool, second: Proof | None, fixed: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both repairs write the first line anew, so only one of them fits the original's text."""
    other = dataclasses.replace(FINDING, range=Range(Position(1, 4), Position(1, 5)))
    moved = dataclasses.replace(other, range=Range(Position(1, 6), Position(1, 7)))
    names = {"x": FINDING, "other": other}

    class Line(Prover):
        def text_of(self, path: str) -> str:
            return "x = y\n"

        def prove(self, texts: dict[str, str], finding: Finding) -> tuple[Proof, Any]:
            (text,) = texts.values()
            removes = tuple(one for one, left in ((FINDING, "x"), (other, "y")) if left not in text)
            return Proof(Status.VERIFIED, "", removes), SimpleNamespace(findings=(moved,), compiles=())

    def propose(finding: Finding, text: str) -> list[Fix]:
        assert (finding, text) == (moved, "new = y\n")
        return [Fix("again", "", (Edit(Range(Position(1, 0), Position(1, 7)), "x = z" if undone else "new = z"),))]

    prover: Any = Line()
    tried = [
        Tried(one, (Candidate(Fix("", "", (Edit(Range(Position(1, 0), Position(1, 5)), text),)), "user.py", proof),))
        for one, text, proof in (
            (FINDING, "new = y", Proof(Status.VERIFIED, "", (FINDING,))),
            (other, "x = z", second or Proof(Status.VERIFIED, "", (other,))),
        )
    ]
    monkeypatch.setattr("irscope.driver.fixing.trying.proposals", propose)
    together = combined(Trying(prover, 60), tried)
    text = "new = z\n" if len(fixed) > 1 else "new = y\n"
    assert (together.texts, together.fixed) == ({"user.py": text}, tuple(names[one] for one in fixed))


def test_what_is_proposed_again_may_remove_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """The repairs of the second and third overlap with the first's; the second's, proposed again, removes the third."""
    second, third = (dataclasses.replace(FINDING, range=Range(Position(n, 0), Position(n, 1))) for n in (2, 3))

    class Two(Prover):
        def text_of(self, path: str) -> str:
            return "x"

        def prove(self, texts: dict[str, str], finding: Finding) -> tuple[Proof, Any]:
            is_all = "all" in texts.values()
            proof = Proof(Status.VERIFIED, "", (FINDING, second, third) if is_all else (FINDING,))
            return proof, SimpleNamespace(findings=() if is_all else (second,), compiles=())

    prover: Any = Two()
    whole = (Edit(Range(Position(1, 0), Position(1, 1)), "one"),)
    tried = [
        Tried(one, (Candidate(Fix("", "", whole), "user.py", Proof(Status.VERIFIED, "", (one,))),))
        if one is FINDING
        else Tried(
            one,
            (
                Candidate(
                    Fix("", "", (Edit(whole[0].range, f"n{one.range.start.line}"),)),
                    "user.py",
                    Proof(Status.VERIFIED, "", (one,)),
                ),
            ),
        )
        for one in (FINDING, second, third)
    ]
    again = Fix("again", "", (Edit(Range(Position(1, 0), Position(1, 3)), "all"),))
    monkeypatch.setattr("irscope.driver.fixing.trying.proposals", lambda finding, text: [again])
    together = combined(Trying(prover, 60), tried)
    assert (together.texts, together.fixed) == ({"user.py": "all"}, (FINDING, second, third))
    assert together.left_out == ()


def test_time_is_left_to_show_which_fixes_go_together(monkeypatch: pytest.MonkeyPatch) -> None:
    prover: Any = Prover()
    trying = Trying(prover, 100)
    began = time.monotonic()
    for after, over, ended in ((70, False, False), (80, True, False), (101, True, True)):
        monkeypatch.setattr(time, "monotonic", lambda after=after: began + after)
        assert (trying.is_over, trying.has_ended) == (over, ended)


def test_a_chain_repairs_if_each_of_it_does() -> None:
    first, second, third = map(fix_of, ("Keep it", "Check it", "Print it"))
    whole = chained([first, second], ())
    assert whole.repairs and not chained([first, fix_of(FixMethod.FUNCTION_TO_PYTHON)], ()).repairs
    longer = chained([whole, third], ())
    assert (longer.title, longer.steps) == ("Keep it; then check it; then print it", (first, second, third))
    assert (longer.first, first.first) == (first, first)


def test_a_chain_says_what_each_of_it_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    other = dataclasses.replace(FINDING, code="GB0124")

    class Next(Prover):
        def prove(self, texts: dict[str, str], finding: Finding) -> tuple[Proof, Any]:
            (text,) = texts.values()
            status, adds = (Status.VERIFIED, ()) if "second" in text else (Status.UNPROVEN, (other,))
            return Proof(status, "", (finding,), adds), SimpleNamespace(findings=(), compiles=())

    def propose(finding: Finding, text: str) -> list[Fix]:
        word = "second" if finding is other else "first"
        return [Fix(word, f"The {word} costs.", (Edit(PLACE, word),))]

    prover: Any = Next()
    monkeypatch.setattr("irscope.driver.fixing.trying.proposals", propose)
    (one,) = Trying(prover, 60).finding(FINDING).candidates
    assert (one.fix.title, one.fix.caveat) == (f"first{THEN}second", "The first costs. The second costs.")


def test_a_finding_that_another_fix_removes_needs_no_fix_of_its_own() -> None:
    other = dataclasses.replace(FINDING, range=Range(Position(2, 0), Position(2, 1)))
    before = Range(Position(1, 0), Position(1, 0))

    class Both(Prover):
        def prove(self, texts: dict[str, str], finding: Finding) -> tuple[Proof, Any]:
            return Proof(Status.VERIFIED, "", (FINDING, other)), SimpleNamespace(findings=(), compiles=())

    prover: Any = Both()
    proof = Proof(Status.VERIFIED, "", (FINDING, other))
    both = [
        Tried(one, (Candidate(Fix(name, "", (Edit(before, f"def {name}(): ...\n"),)), "user.py", proof),))
        for one, name in ((FINDING, "a"), (other, "b"))
    ]
    together = combined(Trying(prover, 60, with_rules=False), both)
    assert (together.texts, together.fixed) == ({"user.py": "def a(): ...\nx\n"}, (FINDING, other))
    trying = Trying(prover, 60, with_rules=False)
    singly = one_by_one(trying, [(one.finding, one.candidates[0]) for one in both])
    assert (singly.texts, singly.fixed) == (together.texts, together.fixed)
