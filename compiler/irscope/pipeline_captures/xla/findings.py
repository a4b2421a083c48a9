"""What is said about lazy tensors: graphs that were cut, operators that ran on the host, and graphs compiled again."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from irscope.capture.operation_graphs import Frames, Operation
from irscope.capture.run_book import RunBook
from irscope.events.stack import FramePlace, innermost_user, related_to
from irscope.findings.kinds import fallback, graph_break, recompilation
from irscope.pipeline_captures.xla.frames import BEFORE_STEP
from irscope.pipeline_captures.xla.tracing import Cut
from irscope.pipelines.dynamo.stages import NOT_COMPILED
from irscope.protocol import Compile, Finding, Related, Severity
from irscope.usercode.source import function_at, range_of_focus, range_of_line, range_of_name
from irscope.usercode.user_files import is_package_file, is_user_file
from irscope.vocabulary.findings import FindingKind

CUT, FALLBACK, RECOMPILED = "lazy-graph-cut", "fallback-no-xla-lowering", "recompile-lazy-graph"
STEP, ON_HOST = "lazy-graph-step", "tensors-on-host"
_ASKS = {
    "step": "the context `torch_xla.step` or `torch_xla.compile` ends",
    BEFORE_STEP: "the context `torch_xla.step` or `torch_xla.compile` begins, and operations were pending",
    "loader": "the loader of PyTorch/XLA gives the next batch",
    "openxla": 'a program that `backend="openxla"` compiles needs its inputs',
}
_MOVED = "what has another size was moved to the device here"
_READS = {
    "aten._local_scalar_dense.default": "Python needs the value of a tensor",
    "aten._to_copy.default": "a tensor is copied to the host",
    "aten.equal.default": "Python needs to know whether two tensors are equal",
}


def add_cut(book: RunBook, cut: Cut, compile: Compile | None, places: list[FramePlace]) -> None:
    """The lazy graph was run in the middle of the program, as at a graph break.

    Args:
        compile: None: XLA had compiled the same graph for another place.
    """
    if cut.is_fallback:
        _add_fallback(book, cut, compile, places)
        return
    why = _READS.get(cut.operator, f"the result of {cut.operator} depends on values")
    message = f"The lazy graph ends here: {why}."
    explanation = "XLA compiles and runs the operations up to here, Python waits for them, and a new graph begins."
    hints = (
        "Move what needs the value out of the program, to the end of the step.",
        "Use torch.where in place of an if that depends on a tensor.",
    )
    _add(book, graph_break.KIND, CUT, message, explanation, hints, compile, places)


def add_step(book: RunBook, by: str, compile: Compile | None, places: list[FramePlace]) -> None:
    """The lazy graph was run because the script asks for it.

    Args:
        by: What of PyTorch/XLA it called; see `asked_by`.
    """
    message = f"The lazy graph ends here: {_ASKS.get(by, f'`{by}` runs what is pending')}."
    explanation = "XLA compiles the operations up to here if it does not know their graph, and runs them."
    _add(book, graph_break.KIND, STEP, message, explanation, (), compile, places, severity=Severity.HINT)


def add_not_compiled(
    book: RunBook, program: tuple[str, str, int], compiles: tuple[str, ...], places: list[FramePlace]
) -> None:
    """A program for the backend of PyTorch/XLA gets tensors of the host.

    Args:
        program: Its name, its file and its first line.
    """
    function, file, line = program
    node = function_at(file, function, line)
    call = innermost_user(places)
    book.findings.add(
        Finding(
            kind=NOT_COMPILED.id,
            code=ON_HOST,
            severity=NOT_COMPILED.severity,
            message=f'`{function}` gets no tensors of the XLA device, so `backend="openxla"` compiles nothing.',
            explanation="It warns and runs each operation eagerly."
            + (" The stages show what lazy tensors make of the program." if compiles else ""),
            hints=("Move the module and its inputs to the device: `.to(torch_xla.device())`.",),
            link=None,
            file=file,
            range=range_of_name(file, node) if node is not None else range_of_line(file, line),
            count=1,
            compiles=compiles,
            related=() if call is None else (Related(places[call].file, places[call].range, "this call"),),
        )
    )


def _add_fallback(book: RunBook, cut: Cut, compile: Compile | None, places: list[FramePlace]) -> None:
    """An operator ran on the host."""
    message = f"XLA cannot compile {cut.operator}: it runs on the host."
    explanation = "Its inputs are computed and copied to the host, and its results are copied back."
    hints = ("Write it with other operators, or move it out of the program.",)
    severity = Severity.WARNING  # each call waits for the device
    _add(book, fallback.KIND, FALLBACK, message, explanation, hints, compile, places, severity=severity)


def add_recompilation(
    book: RunBook, old: Sequence[Operation], new: Sequence[Operation], compile: Compile, places: list[FramePlace]
) -> None:
    """A graph was compiled again because it is not the one of an earlier call."""
    what, related = difference(old, new)
    message = f"XLA compiled the lazy graph again: {what}."
    explanation = "XLA compiles a graph for fixed sizes. Other sizes, or other operations, need a new compile."
    is_size = not related or related[0].message == _MOVED
    hints = ("Pad inputs to a few sizes.",) if is_size else ("Keep what Python decides the same in each call.",)
    _add(book, recompilation.KIND, RECOMPILED, message, explanation, hints, compile, places, related)


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
            return f"{after.name} was {before.value.printed}, now {after.value.printed}", _moved(after)
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


def _moved(one: Operation) -> tuple[Related, ...]:
    """The user's line that moved an input to the device, if the script did."""
    mine = [(file, line) for file, line, _ in one.frames if is_user_file(file)]
    return tuple(Related(file, range_of_line(file, line), _MOVED) for file, line in mine[-1:])


def _printed(one: Operation) -> str:
    return f"{one.target}({', '.join(one.written)})"


def _add(
    book: RunBook, kind: FindingKind, code: str, message: str, explanation: str, hints: tuple[str, ...],
    compile: Compile | None, places: list[FramePlace], more: tuple[Related, ...] = (), severity: Severity | None = None,
) -> None:  # fmt: skip
    found = _finding(kind, code, message, explanation, hints, compile, places, more)
    if found is not None:
        book.findings.add(dataclasses.replace(found, severity=severity or found.severity))


def _finding(
    kind: FindingKind, code: str, message: str, explanation: str, hints: tuple[str, ...], compile: Compile | None,
    places: list[FramePlace], more: tuple[Related, ...] = (),
) -> Finding | None:  # fmt: skip
    """At the innermost of the user's frames, else at the compile; None if there is neither."""
    at = innermost_user(places)
    if at is not None:
        file, where, related = places[at].file, places[at].range, related_to(places, at)
    elif compile is not None and compile.file:
        file, where, related = compile.file, range_of_focus(compile.file, compile.line), ()
    else:
        return None
    return Finding(
        kind=kind.id, code=code, severity=kind.severity, message=message, explanation=explanation, hints=hints,
        link=None, file=file, range=where, count=1, compiles=(compile.id,) if compile else (),
        related=(*more, *related),
    )  # fmt: skip
