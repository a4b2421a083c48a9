"""Recompile limit: too many compiles of one function, so from now on what fits none of them runs as plain Python."""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Callable, Iterator

from irscope.events.listening import LogHandler
from irscope.findings.detector import Detector
from irscope.findings.kinds import recompilation
from irscope.findings.moment import Moment
from irscope.findings.places import function_range
from irscope.internals.dynamo_config import limit_raises
from irscope.ir.guard_text import about, parse_failed_guard
from irscope.protocol import Compile, Finding, Related, Severity
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.findings import FAST_AND_DEEP, FindingKind

KIND = FindingKind(
    id="recompile-limit",
    label="Recompile limit",
    short=("recompile limit", "recompile limits"),
    lanes=FAST_AND_DEEP,
    severity=Severity.WARNING,
    filter_label="Recompile limit reached",
    stops_debugger=True,
    costs_every_call=True,
    order=50,
)
CODE = "GB0039"
_GUARD_END = re.compile(r"\s{2,}#|\n")  # after it come the user's line and PyTorch's own remarks
_FUNCTION = re.compile(r"'(?P<name>.+)' \((?P<file>.+):(?P<line>\d+)\)")


class LimitHandler(LogHandler):
    """Hears of the limit.  It leaves no record in the trace, only this warning (checked on torch 2.13):

    ``torch._dynamo hit config.recompile_limit (8)``, with the function and the last reason.
    """

    LOGGER = "torch._dynamo.convert_frame"

    def __init__(self, receive: Callable[[str, int, str, str, int, str], None]) -> None:
        super().__init__(logging.WARNING)
        self._receive = receive

    def emit(self, record: logging.LogRecord) -> None:
        """Pass on the parts of a record that reports a limit; ignore all others."""
        args = record.args
        if "torch._dynamo hit config" in str(record.msg) and isinstance(args, tuple) and len(args) >= 3:
            if match := _FUNCTION.match(str(args[2])):
                last_reason = str(args[3]) if len(args) > 3 else ""
                self._receive(
                    str(args[0]), int(str(args[1])), match["name"], match["file"], int(match["line"]), last_reason
                )


def detect(
    moment: Moment, limit_name: str, limit: int, _name: str, file: str, line: int, last_reason: str
) -> Iterator[Finding]:
    """The finding of a function that is not compiled any more."""
    pending = recompilation.take_pending(moment.known)
    call = pending[1].call if pending else recompilation.call_site()
    if call is not None:
        call = dataclasses.replace(call, message="this call matches no compiled version", role=None)
    if mine := moment.known.compiles.of_function(file, line):
        compiles = tuple(compile.id for compile in mine)
        change = recompilation.change_of(pending[1]) if pending else about_reason(last_reason)
        raised_by = _raised_by(moment.fullgraph)
        finding = make(mine[0], limit_name, limit, compiles, call, raised_by, change)
        reason = f"\nThe last reason: {_GUARD_END.split(last_reason)[0]}" if last_reason else ""
        yield dataclasses.replace(finding, explanation=finding.explanation + reason)


def _raised_by(fullgraph: bool) -> str:
    """The setting that makes the limit an error; empty if none does."""
    if fullgraph:
        return "fullgraph=True"
    return "torch._dynamo.config.fail_on_recompile_limit_hit" if limit_raises() else ""


def about_reason(reason: str) -> str:
    """PyTorch's last reason as a phrase; empty if it has none."""
    guard = parse_failed_guard(reason)
    return about(f"`{guard.source}`" if guard.source else "", guard.what) if guard.code != "recompile-guard" else ""


def make(
    function: Compile,
    limit_name: str,
    limit: int,
    compiles: tuple[str, ...],
    call: Related | None,
    raised_by: str = "",
    change: str = "",
) -> Finding:
    """The finding at the function's name; of a library's function, at the user's call.

    Args:
        raised_by: The setting that makes the limit an error; empty if none does.
        change: What changed last, as a phrase.
    """
    from_now_on = f"now fail, because of {raised_by}" if raised_by else "now run as plain Python"
    others = "raises an error" if raised_by else "runs without the compiler"
    last = f" The last change: {change}." if change else ""
    mine = call is None or is_user_file(function.file)
    return Finding(
        kind=KIND.id,
        code=CODE,
        severity=Severity.ERROR if raised_by else KIND.severity,
        message=f"`{function.function_name}` reached the recompile limit ({limit}): calls that match none of its compiles {from_now_on}.{last}",
        explanation=f"torch._dynamo.config.{limit_name} is {limit}. What was compiled stays in use for the calls that match it; every other call {others}.",
        hints=(
            "Remove the cause of the recompilations listed for this function: each of them says what to do.",
            f"If that many versions are wanted: `torch._dynamo.config.{limit_name} = {limit * 2}` before the first call.",
        ),
        link="https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0039.html",
        file=function.file if mine or call is None else call.file,
        range=function_range(function) if mine or call is None else call.range,
        count=1,
        compiles=compiles,
        related=(call,) if call else (),
    )


DETECTORS = (Detector("recompile-limit", detect, handler=LimitHandler),)
