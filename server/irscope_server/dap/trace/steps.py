"""Steps along a symbolic trace: by single instructions, or by lines as a Python debugger steps.

A step is the number of an instruction that Dynamo walked over; None: the trace does not go on that way.
"""

from __future__ import annotations

from irscope_server.dap.trace.traces import TraceSection

NEVER_RETURNED = "Dynamo did not return from this call; this is where it was made."


def over(section: TraceSection, step: int, *, by_line: bool) -> int | None:
    """The next instruction, or line, that is not inside a call made here."""
    assert section.walk is not None
    return section.steps_by_line.over(step) if by_line else section.walk.over(step)


def back(section: TraceSection, step: int, *, by_line: bool) -> int | None:
    """The opposite of `over`."""
    assert section.walk is not None
    return section.steps_by_line.back(step) if by_line else section.walk.back_over(step)


def calls(section: TraceSection, step: int, *, by_line: bool) -> list[int]:
    """Where the functions begin that were inlined here: by the instruction, or by what is left of its line."""
    walk = section.walk
    assert walk is not None
    if not by_line and (step + 1 >= len(walk) or walk.caller(step + 1) != step):
        return []
    found = section.steps_by_line.calls(step)
    return found if by_line else [each for each in found if walk.caller(each) == step]


def makers(section: TraceSection, step: int, *, by_line: bool) -> list[int]:
    """The steps whose nodes count as made here."""
    return section.steps_by_line.rest(step) if by_line else [step]


def out(section: TraceSection, step: int) -> tuple[int, str] | None:
    """After the call of the function at hand, or at the call where nothing came after it, with a word on that.

    None in the compiled function.
    """
    walk = section.walk
    assert walk is not None
    caller = walk.caller(step)
    if caller is None:
        return None
    behind = walk.out(step)
    return (caller, NEVER_RETURNED) if behind is None else (behind, "")


def entry(section: TraceSection, step: int) -> int:
    """Where the function at hand was entered."""
    assert section.walk is not None
    return section.walk.frame_steps(step)[0]
