"""What a panel says where a run, or one of its compiles, has nothing to show."""

from __future__ import annotations

import pytest
from irscope.protocol import SCHEMA, Compile, CompileOutcome, Outcome, OutcomeKind, Report, StageRef
from irscope.vocabulary.stages import Role
from irscope_server.panels.answers import compile_named, why_empty

FAST = "the run used the fast lane, or ended before this stage. Run the whole pipeline to see it."


def compiled(id: str, *stages: str, outcome: CompileOutcome = CompileOutcome.COMPILED, ops: int = 3) -> Compile:
    refs = tuple(StageRef(f"{id}/{name}", name, "python", 0) for name in stages)
    return Compile(id, "f", "/a.py", 1, outcome, 0, ops, 1.0, refs)


def report(*compiles: Compile) -> Report:
    return Report(SCHEMA, "1", "/a.py", "2.13.0", Outcome(OutcomeKind.COMPLETED, 0, "", 1.0), compiles, (), (), ())


PLAIN = compiled("0/0", "bytecode", outcome=CompileOutcome.SKIPPED)
WHOLE = compiled("1/0", "bytecode", "dynamo-graph", "memory-plan", "output-code")
ENDED = compiled("1/1", "bytecode", "dynamo-graph", ops=9)


@pytest.mark.parametrize(
    ("compiles", "asked", "said"),
    [
        ((PLAIN, WHOLE), PLAIN, "Compile 0/0 has no memory plan: it runs as plain Python."),
        ((ENDED, WHOLE), ENDED, "Compile 1/1 has no memory plan: it ended before this stage."),
        ((ENDED,), ENDED, f"Compile 1/1 has no memory plan: {FAST}"),
        ((ENDED,), None, f"This run has no memory plan: {FAST}"),
    ],
)
def test_why_there_is_nothing(compiles: tuple[Compile, ...], asked: Compile | None, said: str) -> None:
    assert why_empty(report(*compiles), "memory plan", asked) == said


def test_the_compile_that_is_shown_first_has_what_the_panel_shows() -> None:
    chosen = [compile_named(report(PLAIN, WHOLE, ENDED), None, role) for role in (Role.MEMORY, None)]
    assert [one and one.id for one in chosen] == ["1/0", "1/1"]
