"""The end of a script whose process has not told how it ended: it was over at once, another program took its place, or
the script closed the pipe."""

from __future__ import annotations

from irscope.protocol import CaptureGap, OutcomeKind
from irscope.system.last_words import Ending


def gap_of(ending: Ending, was_told: bool, is_followed: bool = False) -> CaptureGap | None:
    """What is not captured because of the way in which a run ended; None if nothing is missing.

    Args:
        was_told: Whether the script's process has told through the pipe that its main module ended.
        is_followed: Whether processes that the script started were captured: a program in its place is one of them.
    """
    if ending.program and not is_followed:
        return CaptureGap(f"what `{ending.program}` did", "the script replaced its own process with it (os.exec)")
    if ending.said is not None and not was_told:
        why = "it closed descriptors that it had not opened, as os.closerange(3, …) does"
        return CaptureGap("what the script did after it closed irscope's pipe", why)
    return None


def abrupt_end(code: int, how: str, ending: Ending) -> tuple[OutcomeKind, str]:
    """The kind of outcome, and the message, of a process that ended before its main module did.

    Args:
        code: Its exit code, or minus the signal.
        how: The same in words.
    """
    kind = OutcomeKind.CRASHED if code < 0 else OutcomeKind.SCRIPT_ERROR if code else OutcomeKind.COMPLETED
    if ending.program:
        ended = f"was killed by {how}" if code < 0 else f"ended with {how}"
        return kind, (
            f"The script replaced its own process with `{ending.program}` (os.exec), which {ended}. "
            "What was captured up to then is kept."
        )
    if code < 0:
        return kind, f"The script's process was killed by {how}."
    left = " Processes that it left running were ended with it." if ending.left else ""
    return kind, (
        f"The script's process ended at once with {how}, as os._exit({code}) does: functions at exit did not run. "
        f"What was captured up to then is kept.{left}"
    )
