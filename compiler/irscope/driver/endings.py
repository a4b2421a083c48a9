"""What a run's end adds to its findings: an error inside compiled code is one, at the user's line."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence

from irscope.protocol import (
    CaptureGap,
    Finding,
    FindingSeen,
    GapSeen,
    Message,
    Origin,
    Outcome,
    OutcomeKind,
    Raised,
    Related,
    Report,
    Severity,
)
from irscope.store.store import Store, StoreError


def with_finding(
    store: Store, run: str, outcome: Outcome, raised: Sequence[Raised], on_message: Callable[[Message], None]
) -> Outcome:
    """Keeps the finding of a script that ended inside compiled code; returns the outcome, which then names its line.

    Args:
        raised: What ended it: of a signal the stack of each thread.
    """
    if not raised:
        return outcome
    from irscope.findings.endings import finding_of, outcome_message  # here: most runs end well

    try:
        report = store.report(run)
        both = ((one, finding_of(store, report, one)) for one in raised)
        one, found = next(((one, finding) for one, finding in both if finding is not None), (raised[0], None))
        if found is None:
            return _with_line(outcome, raised[0])
        store.put_finding(run, found)
        for follower in _followers(report, found):
            store.put_finding(run, follower)
            on_message(FindingSeen(follower))
    except Exception as error:  # noqa: BLE001  what ended the script is reported in any case
        gap = CaptureGap("where in compiled code the script failed", f"{type(error).__name__}: {error}")
        with contextlib.suppress(StoreError):  # it may be the store that fails
            store.put_gap(run, gap)
        on_message(GapSeen(gap))
        return outcome
    on_message(FindingSeen(found))
    if outcome.kind is not OutcomeKind.SCRIPT_ERROR:
        return outcome
    place = Origin(found.file, found.range.start.line)
    return dataclasses.replace(outcome, message=outcome_message(one, found), place=place)


def _followers(report: Report, found: Finding) -> Iterator[Finding]:
    """What Dynamo finds at the call whose type check fails: the code that reports the failure is traced, too."""
    from irscope.findings.kinds.compiled_code_error import TYPE_CHECK  # here: most runs end well

    cause = Related(found.file, found.range, "the type check that fails is the cause")
    for finding in report.findings if found.code == TYPE_CHECK else ():
        if (finding.file, finding.range) == (found.file, found.range) and finding.cause != found.cause:
            yield dataclasses.replace(finding, severity=Severity.HINT, follows=cause)


def _with_line(outcome: Outcome, raised: Raised) -> Outcome:
    """How a run ended with a signal, with the innermost line of the user's that was running."""
    from irscope.findings.endings import is_user

    frame = next((frame for frame in reversed(raised.stack) if is_user(frame.file)), None)
    if outcome.kind is not OutcomeKind.CRASHED or frame is None:
        return outcome
    message = f"{outcome.message.rstrip('.')} ({frame.file}:{frame.line})."
    return dataclasses.replace(outcome, message=message, place=Origin(frame.file, frame.line))
