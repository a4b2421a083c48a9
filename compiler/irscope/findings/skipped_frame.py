"""Skipped frame: a function under torch.compile of which nothing was compiled, so all of it runs as plain Python.

Where a graph break is the cause, the break is the finding, and this kind says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from irscope.capture.stack import RESUME_PREFIX, plain_name
from irscope.findings.moment import Moment
from irscope.findings.places import at_function
from irscope.protocol import Compile, Finding, Severity
from irscope.usercode import is_user_file

KIND = "skipped-frame"


def detect(moment: Moment, has_break: bool) -> Iterator[Finding]:
    """When a compile has ended without a graph, without an error and without a graph break.

    Parameters
    ----------
    has_break
        Whether some finding names this compile already.
    """
    compile = moment.compile
    if compile is None or has_break or not _is_worth_saying(compile):
        return
    finding = at_function(
        moment,
        kind=KIND,
        code="skipped-frame",
        message=f"`{plain_name(compile.function)}` was traced, but there was nothing to compile in it: it runs as plain Python.",
        explanation="Dynamo found no tensor operation in this function. Tracing and the guards cost time and bring nothing.",
        hints=("Compile the function that does the tensor work instead of this one.",),
        severity=Severity.HINT,
    )
    if finding is not None:
        yield finding


def _is_worth_saying(compile: Compile) -> bool:
    """Not for what follows a break, nor for functions of libraries: nobody can act on that."""
    return is_user_file(compile.file) and not compile.function.startswith(RESUME_PREFIX)
