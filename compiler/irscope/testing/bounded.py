"""Checks around a piece of code: an AssertionError where it has more graphs, breaks or recompilations than it may."""

from __future__ import annotations

from collections.abc import Mapping

from irscope.findings.control import controlled
from irscope.findings.verdicts import BOUNDS, Measured, measured
from irscope.protocol import Finding, Lane, Report, causes_only
from irscope.testing.capture import ProcessCapture
from irscope.usercode.source import line_text
from irscope.vocabulary.suggestions import did_you_mean
from irscope.vocabulary.visible import printable

KNOWN = tuple(name for name, bound in BOUNDS.items() if Lane.FAST in bound.lanes)
"""The bounds that a check in the test's own process knows: Inductor's work is not captured there."""
_MOST_SHOWN = 10


class CompileCheckError(AssertionError):
    """A number is over its bound; the text has the places and what to do, and ``check`` is who found it."""

    def __init__(self, message: str, check: CompileBounds) -> None:
        super().__init__(message)
        self.check = check


class CompileBounds:
    """The context of `compile_bounds`; it can be used again, but not inside of itself."""

    def __init__(self, limits: Mapping[str, int], fresh: bool) -> None:
        check_limits(limits)
        self._limits, self._fresh = limits, fresh
        self._capture: ProcessCapture | None = None

    def __enter__(self) -> None:
        """Begins to capture."""
        __tracebackhide__ = True
        capture = ProcessCapture()
        if self._fresh:
            _forget()
        capture.start()
        self._capture = capture

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Puts everything back.  Raises CompileCheckError, unless the code has failed by itself."""
        __tracebackhide__ = True
        assert self._capture is not None
        report = self._capture.finish()
        if kind is None and (message := complaint(report, self._limits)):
            raise CompileCheckError(message, self)


def no_graph_breaks(*, fresh: bool = True) -> CompileBounds:
    """A context in which no graph may be cut.

    Args:
        fresh: As in `compile_bounds`; what was compiled before would not be compiled again, and its breaks not seen.
    """
    return compile_bounds(max_graph_breaks=0, fresh=fresh)


def max_recompiles(number: int, *, fresh: bool = False) -> CompileBounds:
    """A context with at most so many recompilations, also of what was compiled before; see `compile_bounds`."""
    return compile_bounds(max_recompiles=number, fresh=fresh)


def compile_bounds(*, fresh: bool = False, **limits: int) -> CompileBounds:
    """A context that captures what is compiled in it, by any thread of this process.

    Args:
        fresh: Forget before what was compiled so far, with `torch.compiler.reset`.
        limits: Upper bounds by name: ``max_graphs``, ``max_graph_breaks``, ``max_recompiles``.

    The end of the context raises CompileCheckError if a number is over its bound, unless the code has failed by itself.
    Raises TypeError for an unknown name, and at the beginning of the context RuntimeError without torch, and inside of
    another one.
    """
    return CompileBounds(limits, fresh)


def check_limits(limits: Mapping[str, object]) -> None:
    """Raises TypeError for a name that is unknown, and for a value that is not a number from 0."""
    for name, value in limits.items():
        if name not in KNOWN:
            near = did_you_mean(name, KNOWN) or f" They are: {', '.join(KNOWN)}."
            raise TypeError(f"irscope knows no bound {name!r} in a test.{near}")
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise TypeError(f"{name}={value!r}: it must be a whole number, 0 or more")


def complaint(report: Report, limits: Mapping[str, float]) -> str:
    """What to tell about a report whose numbers are over a bound; empty if none is."""
    shown = controlled(report, Lane.FAST)
    exceeded = [each for each in measured(report, shown, limits) if each.exceeded]
    if not exceeded:
        return ""
    lines = [line for each in exceeded for line in _told(each, shown)]
    lines += [printable(f"not captured: {gap.what} ({gap.why})") for gap in report.capture_gaps]
    return "\n".join(lines)


def _told(each: Measured, shown: Report) -> list[str]:
    kind = BOUNDS[each.name].kind
    findings = causes_only([finding for finding in shown.findings if finding.kind == kind])
    lines = [each.message]
    for finding in findings[:_MOST_SHOWN]:
        lines += ["", *_lines_of(finding)]
    if len(findings) > _MOST_SHOWN:
        lines += ["", f"and {len(findings) - _MOST_SHOWN} more places"]
    if not findings:
        graphs = [compile for compile in shown.compiles if compile.graph_ops]
        lines += [printable(f"  {c.file}:{c.line}: {c.title} (compile {c.id})") for c in graphs[:_MOST_SHOWN]]
    return lines


def _lines_of(finding: Finding) -> list[str]:
    """``model.py:12:5: graph-break GB0059``, the words, the line, and the remedies."""
    start = finding.range.start
    lines = [f"{finding.file}:{start.line}:{start.column + 1}: {finding.kind} {finding.code}"]
    lines += [f"  {line}" for line in finding.message.split("\n")]
    lines.append(f"  > {line_text(finding.file, start.line).strip()}")
    for hint in finding.hints:
        first, *rest = hint.split("\n")
        lines += [f"  → {first}", *(f"    {line}" for line in rest)]
    if finding.link:
        lines.append(f"  {finding.link}")
    return [printable(line) for line in lines]


def _forget() -> None:
    import torch

    torch.compiler.reset()
