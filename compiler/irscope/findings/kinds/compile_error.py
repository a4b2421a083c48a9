"""Compile error: the compilation failed and the exception went to the user."""

from __future__ import annotations

import dataclasses
import re
import traceback
from collections.abc import Iterator

from irscope.events.break_message import DATA_DEPENDENT_GUARD, BreakMessage, parse_break_messages, sentences
from irscope.events.stack import FramePlace, innermost_user, printed_places, related_to, traced_places, with_traced
from irscope.findings.detector import Detector
from irscope.findings.kinds import graph_break
from irscope.findings.kinds.compiled_code_error import CHECK
from irscope.findings.known_issues import first_of, issue_of
from irscope.findings.moment import Moment
from irscope.findings.places import function_range
from irscope.internals.failed_programs import script_of
from irscope.ir.guard_text import readable_size
from irscope.protocol import Compile, Finding, Fix, Severity
from irscope.store import repeats
from irscope.usercode.user_files import is_torch_file, is_user_file
from irscope.vocabulary.findings import FAST_AND_DEEP, FindingKind

KIND = FindingKind(
    id="compile-error",
    label="Compile error",
    short=("compile error", "compile errors"),
    lanes=FAST_AND_DEEP,
    severity=Severity.ERROR,
    stops_debugger=True,
    deep_codes=("BackendCompilerFailed", "InductorError", "no-cpp-compiler"),
    explains_steps=("graph-break", "error"),
    order=110,
)
_STACK_MARKS = ("User stack:", "Found from :", "Original traceback:")
# How PyTorch reports that an operation fails on fake tensors, as it would on real ones.
_FAILURE = re.compile(r"got (?P<type>\w+)\((?P<quote>['\"])(?P<text>.*?)(?P=quote)\)", re.DOTALL)
_NUMPY_LACKS = re.compile(r"'ndarray' object has no attribute '(?P<method>__\w+__)'")
_EXPLAINED_LINES = 12
# These name a graph break where there may be none: below fullgraph=True, and in the body of an operator.
_OF_BREAKS = ("Unsupported", "UncapturedHigherOrderOpError")
_OF_COMPILERS = ("BackendCompilerFailed", "InductorError", "InternalTorchDynamoError", "LoweringException")
"""What wraps an error that a compiler raises, also where a function of the user's is at fault."""
_INSIDE = "PyTorch's own code raised this while it compiled this line; it is not an error that your code reports."
_SCRIPT = (
    "The compiled graph as a script that fails by itself: the stage *Script that fails by itself*, or "
    "`irscope show --stage {compile}/reproducer`. `irscope repro` makes it smaller, and checks it."
)
_NO_COMPILER = ("InvalidCxxCompiler", "No working C++ compiler found")
_NO_CPP_COMPILER = "no-cpp-compiler"
_NO_COMPILER_HINTS = (
    "Install a C++ compiler: `apt install g++` on Debian and Ubuntu, `xcode-select --install` on macOS.",
    "Or name one in the environment variable CXX. Graph breaks and recompilations do not need it: use the fast lane.",
)


def detect(moment: Moment) -> Iterator[Finding]:
    """The finding of a ``dynamo_error`` record; where the compile failed the book of compiles learns it."""
    finding = _of_error(moment)
    if finding is not None and finding.kind == KIND.id and moment.record.compile is not None:
        moment.known.compiles.failed(moment.record.compile)
        if (fixed := repeats.fixed_at(finding, moment.known.findings)) is not None:
            finding = dataclasses.replace(finding, range=fixed.range)
    if finding is not None:
        yield finding


def _of_error(moment: Moment) -> Finding | None:
    """What the exception in flight is to the user: a compile error, a graph break, or None.

    Dynamo writes one for every exception that ends a compile, also for those that it then swallows to run the frame
    as plain Python.  The ones that it has logged as a graph break are passed over, and the others are the graph breaks
    that leave no record of their own.
    """
    error = moment.error
    if error is None:
        return None
    soft = type(error).__name__ in ("Unsupported", "UserError") and not moment.fullgraph
    if soft:
        if getattr(error, "logged", False):
            return None
        messages = parse_break_messages(str(error))
        if not messages and type(error).__name__ == "Unsupported" and str(error).strip():
            messages = [sentences(str(error))]
        return graph_break.make(moment, messages, skipped=True)
    return make(moment, error)


def make(moment: Moment, error: BaseException) -> Finding | None:
    """The finding at the user's expression that failed."""
    text = str(error)
    messages = parse_break_messages(text)
    # An error of the backend has no stack of its own; what is traced at that moment is the end of the function.
    told = [] if getattr(error, "real_stack", None) else _places_in_message(text)
    places = with_traced(told or traced_places(error))
    at = innermost_user(places)
    if at is None:
        return None
    messages = graph_break.with_guard(messages, error)
    cause = messages[0] if messages else None
    name = type(error).__name__
    head, hints = _head_and_hints(error, cause)
    inside, link = _inside(error) if head == _FAILED_INSIDE else ("", cause.link if cause else None)
    if any(mark in text for mark in _NO_COMPILER):
        name, hints = _NO_CPP_COMPILER, _NO_COMPILER_HINTS
    hints = (*hints, *_scripts(moment.record.compile, error))
    fixes: tuple[Fix, ...] = ()
    headline, explanation = first_sentence(text), _without_advice(text)
    if cause is not None and (name in _OF_BREAKS or cause.code == DATA_DEPENDENT_GUARD):
        words = graph_break.words_at(places, at, messages, text, skipped=False)
        headline = words.message.replace("the graph is cut here", "and fullgraph=True allows no graph break")
        if not moment.fullgraph:  # PyTorch does not catch each guard, and cuts the graph only where it does
            headline = words.message.removeprefix("Graph break: ").replace("; the graph is cut here", "")
        explanation, hints, fixes = words.explanation, words.hints or hints, graph_break.fixes_of(words)
    elif cause is not None:
        failure = _FAILURE.search(cause.explanation)
        headline = f"{failure['type']}: {failure['text']}" if failure else cause.type
        explanation, hints = cause.explanation, (*_of_numpy(cause), *hints)
    elif name == "ConstraintViolationError":
        violations = [line.strip()[2:] for line in text.split("\n") if line.startswith("  - ")]
        headline = readable_size(violations[0].split(". ")[0].rstrip(".")) if violations else headline
        hints = (
            "Keep the size out of what fixes it here (a condition, a constant shape), or do not mark it.",
            "`torch._dynamo.maybe_mark_dynamic` instead of `mark_dynamic` asks for it and lets the code fix it.",
        )
    return Finding(
        kind=KIND.id,
        code=(cause.code if cause else "") or name,
        severity=KIND.severity,
        message=f"{head}: {headline}",
        explanation=inside + explanation,
        hints=hints,
        link=link,
        file=places[at].file,
        range=places[at].range,
        count=1,
        compiles=(moment.record.compile,) if moment.record.compile else (),
        related=related_to(places, at),
        fixes=fixes,
    )


def _scripts(compile: str | None, error: BaseException) -> tuple[str, ...]:
    """The hint at the script that fails by itself, if there is one."""
    return (_SCRIPT.format(compile=compile),) if compile and script_of(error) is not None else ()


def of_program(error: Exception, compile: Compile) -> Finding:
    """The finding where Inductor fails with a whole program, without Dynamo: at the line that its message names, else at
    the function."""
    text = str(error)
    places = _places_in_message(text)
    at = innermost_user(places)
    no_compiler = any(mark in text for mark in _NO_COMPILER)
    return Finding(
        kind=KIND.id,
        code=_NO_CPP_COMPILER if no_compiler else type(error).__name__,
        severity=KIND.severity,
        message=f"Compilation failed: {first_sentence(text)}",
        explanation=f"The program runs as plain Python.\n{_without_advice(text)}",
        hints=_NO_COMPILER_HINTS if no_compiler else (),
        link=None,
        file=compile.file if at is None else places[at].file,
        range=function_range(compile) if at is None else places[at].range,
        count=1,
        compiles=(compile.id,),
        related=() if at is None else related_to(places, at),
    )


def _places_in_message(text: str) -> list[FramePlace]:
    """Some errors carry their stack only as text: a constraint violation, an error while Inductor lowers a node."""
    for mark in _STACK_MARKS:
        _, found, stack = text.rpartition(mark)
        if found:
            return printed_places(stack)
    return []


_FAILED, _FAILED_INSIDE = "Compilation failed", "Compilation failed inside PyTorch"


def _inside(error: BaseException) -> tuple[str, str | None]:
    """What comes before the explanation of a failure inside PyTorch, and the link of its issue if one is known."""
    if (issue := issue_of(error)) is None:
        return f"{_INSIDE}\n", None
    seen = f", seen on torch {issue.seen}" if issue.seen else ""
    return f"{_INSIDE} It looks like issue {issue.number} of PyTorch{seen}.\n", issue.link


def _head_and_hints(error: BaseException, cause: BreakMessage | None) -> tuple[str, tuple[str, ...]]:
    """How the message begins, and the hints that come with the error itself."""
    if cause is not None:
        return _FAILED, hints_about(cause)
    is_internal = type(error).__name__ in _OF_COMPILERS and failed_inside(error)
    return (_FAILED_INSIDE, (CHECK,)) if is_internal else (_FAILED, ())


def hints_about(message: BreakMessage) -> tuple[str, ...]:
    """PyTorch's hints; where it guesses that the code fails without compile, too, how to find that out."""
    from irscope.fixing.advice.fallback import hints_of  # here: with it come the rules for all breaks

    guesses = any(hint.startswith(_GUESS) for hint in message.hints)
    return (*hints_of(message), *((CHECK,) if guesses else ()))


def _of_numpy(cause: BreakMessage) -> tuple[str, ...]:
    """What to do where Dynamo's stand-in for a number of NumPy's lacks a method that the number has; else nothing."""
    lacks = _NUMPY_LACKS.search(cause.explanation)
    if lacks is None:
        return ()
    return (
        f"Only in compiled code a number of NumPy's is a tensor, which has no `{lacks['method']}`. Use a function of NumPy itself (`np.round`), or of `math` (`math.floor`) where the number is one of Python's.",
    )


_GUESS = "Your code may result in an error when running in eager"


def failed_inside(error: BaseException) -> bool:
    """Whether PyTorch's own code, or a library that it calls, raised what is behind an error; not a function of the user's
    that it called."""
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(first_of(error).__traceback__)]
    return any(map(is_torch_file, files)) and not any(map(is_user_file, files))


def first_sentence(text: str) -> str:
    """The first line that says something, without PyTorch's advice."""
    lines = [line.strip() for line in text.strip().split("\n") if line.strip()]
    if not lines:
        return "no message"
    head = lines[0]
    if head.startswith("backend=") and head.endswith("raised:") and len(lines) > 1:
        head = f"{head.removesuffix(' raised:')}: {lines[1]}"
    return re.sub(r"\s*For more information, run with TORCH_LOGS=.*$", "", head)


def _without_advice(text: str) -> str:
    lines = re.split(r"\nSet TORCHDYNAMO_VERBOSE=1|\nSet TORCH_LOGS=", text, maxsplit=1)[0].strip().split("\n")
    more = [f"… ({len(lines) - _EXPLAINED_LINES} more lines)"] if len(lines) > _EXPLAINED_LINES else []
    return "\n".join([*lines[:_EXPLAINED_LINES], *more])


DETECTORS = (Detector("dynamo_error", detect),)
