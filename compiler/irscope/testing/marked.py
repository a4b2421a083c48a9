"""What the mark ``irscope`` of pytest does with a test."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from irscope.testing.bounded import CompileCheckError, compile_bounds

_DEFAULT = {"max_graph_breaks": 0}


def put_check_around(item: Any) -> None:
    """Makes a test of pytest's fail where it goes over the bounds of its marks; of several the closest one counts."""
    run = getattr(item.runtest, "unchecked", item.runtest)  # a test that is repeated is set up again
    marks = list(item.iter_markers("irscope"))

    def runtest() -> None:
        __tracebackhide__ = True
        given: dict[str, Any] = {}
        for mark in reversed(marks):
            given.update(mark.kwargs)
        fail = sys.modules["pytest"].fail
        if any(mark.args for mark in marks):
            fail("pytest.mark.irscope takes names, as in @pytest.mark.irscope(max_graph_breaks=0)", pytrace=False)
        if trouble := _checked(run, given):
            fail(trouble, pytrace=False)

    runtest.unchecked = run  # type: ignore[attr-defined]
    item.runtest = runtest


def _checked(run: Callable[[], None], given: Mapping[str, Any]) -> str:
    """Runs the test; what is wrong with the mark or with what was compiled, and an empty text if nothing is."""
    __tracebackhide__ = True
    limits = {name: value for name, value in given.items() if name != "fresh"} or _DEFAULT
    try:
        check = compile_bounds(fresh=bool(given.get("fresh", True)), **limits)
    except TypeError as error:
        return str(error)
    try:
        with check:
            run()
    except CompileCheckError as error:
        if error.check is not check:
            raise  # of a context in the test
        return str(error)
    return ""
