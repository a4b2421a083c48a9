"""A gradient of zeros where the original has none is seen, and keeps a fix from being verified."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from irscope.driver.trials.proving import Proof, Status, Trial, _also_without_compile, _decided
from irscope.protocol import Finding, FoundEvidence, Outcome, OutcomeKind, Position, Range, Severity
from irscope.runner.calls import WITHOUT
from irscope.runner.compared import lost
from irscope.runner.evidence import _name


def call(*without: str) -> dict[str, Any]:
    return {"gradient of state a": 1, "gradient of state b": 1, WITHOUT: list(without)}


@pytest.mark.parametrize(
    ("before", "now", "zeroed"),
    [
        (call("state b"), call("state b"), []),
        (call("state b"), call(), ["f#0: state b"]),
        (call(), call("state b"), []),
        (call("state b"), {"raised": "ValueError"}, []),
        ({"result": 1}, call(), []),
    ],
)
def test_what_has_a_gradient_only_now(before: dict[str, Any], now: dict[str, Any], zeroed: list[str]) -> None:
    assert list(lost(WITHOUT, {"f#0": before}, {"f#0": now})) == zeroed


def trial(**evidence: Any) -> Trial:
    outcome = Outcome(OutcomeKind.COMPLETED, 0, "", 0.1)
    return Trial(outcome, (), (), ([], []), FoundEvidence(programs=1, tensors=1, gradients=1, **evidence))


def test_it_is_not_verified() -> None:
    proof = Proof(Status.VERIFIED, "")
    assert _also_without_compile(proof, trial(), trial()).status is Status.VERIFIED
    found = _also_without_compile(proof, trial(), trial(zeroed=("f#0: state b",)))
    assert (found.status, "f#0: state b gets a gradient of zeros" in found.reason) == (Status.UNPROVEN, True)


def test_a_change_with_which_nothing_is_compiled_is_not_verified() -> None:
    place = Range(Position(1, 0), Position(1, 1))
    finding = Finding("graph-break", "GB0170", Severity.WARNING, "", "", (), None, "a.py", place, 1, ())
    original = dataclasses.replace(trial(), findings=(finding,))
    proof = _decided(original, trial(), trial(), finding, {})
    assert (proof.status, proof.reason) == (Status.UNPROVEN, "Nothing is compiled with it.")


def test_other_code_of_a_function_leaves_its_name() -> None:
    """Calls of both runs are compared by name, and a workaround puts other code into a library's function."""

    class Model:
        def forward(self) -> int:
            return 1

    def forward_without_break(self: Model) -> int:
        return 2

    Model.forward.__code__ = forward_without_break.__code__
    assert Model().forward() == 2
    assert (_name(Model()), _name(Model().forward), _name(trial)) == ("forward", "forward", "trial")  # type: ignore[arg-type]
