"""What is said about lazy tensors: graphs that were cut, operators that ran on the host, and graphs compiled again."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from irscope.capture.operation_graphs import Frames, Operation
from irscope.capture.run_book import RunBook
from irscope.capture.stack import FramePlace, innermost_user, related_to
from irscope.findings.kinds import fallback, graph_break, recompilation
from irscope.pipelines.xla.tracing import Cut
from irscope.protocol import Compile, Finding, Related, Severity
from irscope.usercode.source import range_of_focus, range_of_line
from irscope.usercode.user_files import is_package_file, is_user_file
from irscope.vocabulary.findings import FindingKind

CUT, FALLBACK, RECOMPILED = "lazy-graph-cut", "fallback-no-xla-lowering", "recompile-lazy-graph"
_READS = {
    "aten._local_scalar_dense.default": "Python needs the value of a tensor",
    "aten._to_copy.default": "a tensor is copied to the host",
    "aten.equal.default": "Python needs to know whether two tensors are equal",
}


def add_cut(book: RunBook, cut: Cut, compile: Compile, places: list[FramePlace]) -> None:
    """The lazy graph was run in the middle of the program, as at a graph break."""
    why = _READS.get(cut.operator, f"the result of {cut.operator} depends on values")
    message = f"The lazy graph ends here: {why}."
    explanation = "XLA compiles and runs the operations up to here, Python waits for them, and a new graph begins."
    hints = (
        "Move what needs the value out of the program, to the end of the step.",
        "Use torch.where in place of an if that depends on a tensor.",
    )
    book.findings.add(_finding(graph_break.KIND, CUT, message, explanation, hints, compile, places))


def add_fallback(book: RunBook, cut: Cut, compile: Compile, places: list[FramePlace]) -> None:
    """An operator ran on the host."""
    message = f"XLA cannot compile {cut.operator}: it runs on the host."
    explanation = "Its inputs are computed and copied to the host, and its results are copied back."
    hints = ("Write it with other operators, or move it out of the program.",)
    found = _finding(fallback.KIND, FALLBACK, message, explanation, hints, compile, places)
    book.findings.add(dataclasses.replace(found, severity=Severity.WARNING))  # each call waits for the device


def add_recompilation(
    book: RunBook, old: Sequence[Operation], new: Sequence[Operation], compile: Compile, places: list[FramePlace]
) -> None:
    """A graph was compiled again because it is not the one of an earlier call."""
    what, related = difference(old, new)
    message = f"XLA compiled the lazy graph again: {what}."
    explanation = "XLA compiles a graph for fixed sizes. Other sizes, or other operations, need a new compile."
    hints = ("Pad inputs to a few sizes.",) if not related else ("Keep what Python decides the same in each call.",)
    found = _finding(recompilation.KIND, RECOMPILED, message, explanation, hints, compile, places, related)
    book.findings.add(found)


def with_libraries(places: list[FramePlace], frames: Frames) -> list[FramePlace]:
    """The user's frames, and the library's frames below the last of them."""
    own = max((at for at, (file, _, _) in enumerate(frames) if is_user_file(file)), default=-1)
    below = [one for one in frames[own + 1 :] if is_package_file(one[0])]
    return [*places, *(FramePlace(file, function, range_of_focus(file, line)) for file, line, function in below)]


def difference(old: Sequence[Operation], new: Sequence[Operation]) -> tuple[str, tuple[Related, ...]]:
    """What changed from one graph to the next, and the line of the first operation that is another."""
    inputs = [[one for one in graph if one.op == "placeholder"] for graph in (old, new)]
    for before, after in zip(*inputs, strict=False):
        if before.value and after.value and before.value != after.value:
            return f"{after.name} was {before.value.printed}, now {after.value.printed}", ()
    calls = [[one for one in graph if one.op == "call_function"] for graph in (old, new)]
    for before, after in zip(*calls, strict=False):
        if (before.target, before.written) != (after.target, after.written):
            mine = [(file, line) for file, line, _ in after.frames if is_user_file(file)]
            where = tuple(
                Related(file, range_of_line(file, line), "the operation that is another") for file, line in mine[-1:]
            )
            return f"{before.name} was {_printed(before)}, now {_printed(after)}", where
    if len(calls[0]) == len(calls[1]):  # XLA writes the scalars 0 and 1 into the graph
        return "a number that is a constant of the graph has changed, or which results are in use at its end", ()
    return f"it had {len(calls[0])} operations, now {len(calls[1])}", ()


def _printed(one: Operation) -> str:
    return f"{one.target}({', '.join(one.written)})"


def _finding(
    kind: FindingKind, code: str, message: str, explanation: str, hints: tuple[str, ...], compile: Compile,
    places: list[FramePlace], more: tuple[Related, ...] = (),
) -> Finding:  # fmt: skip
    at = innermost_user(places)
    file = compile.file if at is None else places[at].file
    where = range_of_focus(compile.file, compile.line) if at is None else places[at].range
    related = () if at is None else related_to(places, at)
    return Finding(
        kind=kind.id, code=code, severity=kind.severity, message=message, explanation=explanation, hints=hints,
        link=None, file=file, range=where, count=1, compiles=(compile.id,), related=(*more, *related),
    )  # fmt: skip
