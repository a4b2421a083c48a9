"""What the trials of fixes say of hints, and which finding is tried first."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from irscope.driver.fixing.candidates import Candidate, Tried
from irscope.driver.hints import Standing, tried_hints
from irscope.driver.trials.proving import Gain, Proof, Status
from irscope.fixing.proposals import chained
from irscope.protocol import Edit, Finding, Fix, FixMethod, Position, Range, Severity, carrying_out
from irscope_server.base.texts import file_key
from irscope_server.panels.findings import _hints
from irscope_server.running.proofs import Proofs

UNTRIED = "not tried, because: irscope has no change of `script.py` that carries it out."
HINTS = ("first", "second", "third")


def _at(line: int) -> Range:
    return Range(Position(line, 0), Position(line, 1))


def _fix(name: str, method: FixMethod | None = None) -> Fix:
    return Fix(name, "", (Edit(_at(1), name),), method=method)


def _finding(*fixes: Fix | None, file: str = "/w/script.py", line: int = 3) -> Finding:
    return Finding(
        "graph-break", "GB0170", Severity.WARNING, "It breaks.", "", HINTS, None, file, _at(line), 1, (),
        fixes=carrying_out(fixes),
    )  # fmt: skip


def _proof(status: Status, graphs: tuple[int, int] = (2, 1), reason: str = "", adds: tuple[Finding, ...] = ()) -> Proof:
    return Proof(status, reason, (_finding(),), adds, (), Gain(graphs, (1.0, 1.0)))


NEW = (_finding(line=9),)
NOT_RUN = dataclasses.replace(_proof(Status.UNPROVEN, reason="It would write a file."), gain=None)


@pytest.mark.parametrize(
    ("proof", "method", "standing", "said"),
    [
        (_proof(Status.VERIFIED), None, Standing.HELPS, "tried: helps (1 finding fewer, 1 graph (was 2))"),
        (_proof(Status.VERIFIED), FixMethod.HELPER_TO_PYTHON, Standing.NO_HELP,
         "tried: does not help here, because: it repairs nothing: what broke runs as plain Python."),
        (_proof(Status.DISPROVEN, reason="The results differ."), None, Standing.NO_HELP,
         "tried: does not help here, because: The results differ."),
        (_proof(Status.UNPROVEN, (2, 2), "Another comes.", NEW), None, Standing.NO_HELP,
         "tried: does not help here, because: Another comes."),
        (_proof(Status.UNPROVEN, (8, 2), "Another comes.", NEW), None, Standing.PARTLY,
         "tried: helps in part (2 graphs (was 8). Another comes.)"),
        (_proof(Status.UNPROVEN, reason="Nothing was compared."), None, Standing.UNPROVEN,
         "tried: not proven, because: Nothing was compared."),
        (NOT_RUN, None, Standing.NOT_TRIED, "not tried, because: It would write a file."),
    ],
)  # fmt: skip
def test_what_a_trial_says_of_a_hint(proof: Proof, method: FixMethod | None, standing: Standing, said: str) -> None:
    fix = _fix("do it", method)
    finding = _finding(None, fix)
    tried = Tried(finding, (Candidate(fix, finding.file, proof),))
    (hint,) = [hint for hint in tried_hints(finding, tried) if hint.text == "second"]
    assert (hint.standing, hint.said) == (standing, said)


def test_what_helps_is_first_and_what_does_not_is_last() -> None:
    raises, chain = _fix("raises"), _fix("leads on")
    finding = _finding(raises, None, chain)
    assert [fix.hint for fix in finding.fixes] == [0, 2]
    candidates = (
        Candidate(chained([chain, _fix("more")], ()), finding.file, _proof(Status.VERIFIED)),
        Candidate(raises, finding.file, _proof(Status.DISPROVEN)),
        Candidate(_fix("of a rule"), finding.file, _proof(Status.VERIFIED)),
    )
    hints = tried_hints(finding, Tried(finding, candidates))
    assert [(hint.text, hint.standing) for hint in hints] == [
        ("third", Standing.HELPS), ("first", Standing.NO_HELP),
    ]  # fmt: skip  # the second one, which no edit carries out, is not needed
    assert [(hint.text, hint.said) for hint in tried_hints(finding, None)] == [(text, "not tried") for text in HINTS]


def test_the_panel_says_nothing_of_trials_before_there_is_one() -> None:
    fix = _fix("do it")
    finding = _finding(None, fix)
    assert {hint.said for hint in _hints(tried_hints(finding, None))} == {""}
    tried = Tried(finding, (Candidate(fix, finding.file, _proof(Status.DISPROVEN, reason="It fails.")),))
    assert [(hint.text, hint.said, hint.helps) for hint in _hints(tried_hints(finding, tried))] == [
        ("first", UNTRIED, None),
        ("third", UNTRIED, None),
        ("second", "tried: does not help here, because: It fails.", False),
    ]


def test_the_finding_that_the_user_looks_at_is_tried_first() -> None:
    workers: Any = None
    proofs = Proofs(workers, enabled=False)
    findings = [_finding(file=file, line=line) for file in ("/w/a.py", "/w/b.py") for line in (3, 40)]

    def order() -> list[tuple[str, int]]:
        return [(found.file, found.range.start.line) for found in sorted(findings, key=proofs._distance)]

    assert order() == [("/w/a.py", 3), ("/w/a.py", 40), ("/w/b.py", 3), ("/w/b.py", 40)]
    proofs.looks_at(file_key("/w/b.py"), 38)
    assert order() == [("/w/b.py", 40), ("/w/b.py", 3), ("/w/a.py", 3), ("/w/a.py", 40)]
