"""The finding of a script that ended inside compiled code, at the user's line of the operation that failed."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from irscope.events.stack import call_in
from irscope.findings.kinds.compiled_code_error import CHECK, KIND, TYPE_CHECK
from irscope.findings.out_of_memory import out_of_memory
from irscope.findings.type_checks import hints_for, library_of
from irscope.internals.compiled_frames import call_around, compiled_frame, function_around, outermost_call
from irscope.pipelines.registry import role_of, stage_kind
from irscope.protocol import Compile, Finding, Origin, Position, Raised, Range, Related, Report, StackFrame
from irscope.provenance.linked import LinkedLines
from irscope.store.store import Store
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.stages import Role
from irscope.vocabulary.visible import bounded

_LIBRARIES = re.compile(r"/lib(64)?/python3[.\d]*/")
"""The libraries of an interpreter that need not be this one."""
_NAME = re.compile(r"[A-Za-z_]\w*")
_CHECK_LINES = 6
"""How far below a check in a kernel the statement is that needs it."""
_EXPLAINED_LINES = 12


@dataclass(frozen=True)
class _Failed:
    """What failed in a compile.

    Args:
        compiles: The compile; those of the function if it is not known which one.
        operation: The kernel or the library call; empty if it is not known.
        origins: The user's lines that it came from.
    """

    compiles: tuple[Compile, ...]
    operation: str = ""
    origins: tuple[Origin, ...] = ()


def finding_of(store: Store, report: Report, raised: Raised) -> Finding | None:
    """The finding of what ended a script; None if that was neither compiled code nor a lack of memory."""
    codes = _output_codes(store, report)
    found = _inside_compiled(store, report, raised, codes)
    return found if raised.memory is None else out_of_memory(raised.memory, raised, found, store, report, codes)


def _inside_compiled(
    store: Store, report: Report, raised: Raised, codes: Mapping[str, tuple[Compile, str]]
) -> Finding | None:
    compiled = {(compile.file, compile.function): compile for compile in report.compiles}
    at = compiled_frame(raised.stack, codes.keys(), compiled.keys())
    if at is None:
        return _of_type_check(raised, store.sources(report.run, is_user))
    around = function_around(raised.stack, at)
    function = None if around is None else raised.stack[around]
    failed = _Failed(_compiles_of(report, function))
    if (code := codes.get(raised.stack[at].file)) is not None:
        failed = _failed_at(store, report, *code, raised.stack[at].line, raised.text)
    elif raised.stack[at].code:
        failed = _failed_node(store, report, failed, raised.stack[at].code)
    texts = store.sources(report.run, is_user)
    calls = [frame for frame in raised.stack[: call_around(raised.stack, at)] if is_user(frame.file)]
    inside = [frame for frame in raised.stack[at + 1 :] if is_user(frame.file)]
    return _finding(raised, failed, calls, inside, texts)


def is_user(file: str) -> bool:
    """Whether a file of a stack is the user's, whatever interpreter ran it."""
    return is_user_file(file) and not _LIBRARIES.search(file.replace("\\", "/"))


def _output_codes(store: Store, report: Report) -> dict[str, tuple[Compile, str]]:
    """The files of output code, with their compiles and stages."""
    found: dict[str, tuple[Compile, str]] = {}
    for compile in report.compiles:
        for stage in compile.stages:
            if role_of(stage.name) is Role.CODE:
                data = store.stage_data(report.run, stage.id)
                file = data.get("file") if isinstance(data, dict) else None
                if isinstance(file, str):
                    found[file] = (compile, stage.id)
    return found


def _compiles_of(report: Report, function: StackFrame | None) -> tuple[Compile, ...]:
    if function is None:
        return ()
    wanted = (function.file, function.function)
    return tuple(compile for compile in report.compiles if (compile.file, compile.function) == wanted)


# --- what failed ------------------------------------------------------------------------------------------------------


def _failed_at(store: Store, report: Report, compile: Compile, stage: str, line: int, text: str) -> _Failed:
    """What the line of output code calls, or what made the buffer that it checks."""
    linked = LinkedLines(store, report)
    lines = store.stage_text(report.run, stage).split("\n")
    # The file has a head that the stage lacks, or the other way round: the text of the line is what counts.
    called = next((n for n in _defining(lines, line) if linked.thread.items(stage).at(n) is not None), None)
    if called is None:
        return _Failed((compile,))
    item = linked.thread.items(stage).at(called)
    assert item is not None
    origins = _of_check(store, report, linked, f"{compile.id}/kernel/{item.target}", text)
    origins = origins or linked.source_of(stage, called)
    return _Failed((compile,), item.target, tuple(one for one in origins if is_user(one.file)))


def _failed_node(store: Store, report: Report, failed: _Failed, code: str) -> _Failed:
    """The node of Dynamo's graph that a line computes: the eager backend executes that graph."""
    linked = LinkedLines(store, report)
    name = code.partition(" = ")[0]
    for compile in failed.compiles:
        graph = next((one.id for one in linked.thread.pipeline(compile.id) if stage_kind(one.name).is_graph), "")
        item = linked.thread.items(graph).by_name.get(name) if graph else None
        if item is not None and item.target in code:
            origins = tuple(one for one in linked.keys_of_item(item) if is_user(one.file))
            return _Failed(failed.compiles, item.target, origins)
    return failed


def _defining(lines: Sequence[str], line: int) -> list[int]:
    """The line, and above it those that define what it names: of ``assert_size_stride(buf2, …)`` where buf2 is made."""
    found = [line]
    todo = [line]
    while todo and len(found) < 10:
        at = todo.pop()
        if not 1 <= at <= len(lines):
            continue
        for name in _NAME.findall(lines[at - 1].partition("=")[2] or lines[at - 1]):
            defined = re.compile(rf"\s*{name}\b[\w, ]* = ")
            above = next((n for n in range(at - 1, max(0, at - 200), -1) if defined.match(lines[n - 1])), None)
            if above is not None and above not in found:
                found.append(above)
                todo.append(above)
    return found


def _of_check(store: Store, report: Report, linked: LinkedLines, kernel: str, message: str) -> tuple[Origin, ...]:
    """The lines that a check inside a kernel belongs to, by the text of the check; none if it is not one of these."""
    try:
        lines = store.stage_text(report.run, kernel).split("\n")
    except LookupError:
        return ()
    checks = [n for n, text in enumerate(lines, 1) for quoted in re.findall(r'"([^"]{8,})"', text) if quoted in message]
    for check in checks:
        for line in range(check, min(check + _CHECK_LINES, len(lines)) + 1):
            if keys := linked.source_of(kernel, line):
                return keys
    return ()


def _of_type_check(raised: Raised, texts: Mapping[str, str]) -> Finding | None:
    """The finding of a library that checks types and fails below the call of a compiled function; None for others."""
    if not raised.stack:
        return None
    compiled, library = outermost_call(raised.stack), library_of([raised.stack[-1].file])
    calls = [frame for frame in raised.stack[:compiled] if is_user(frame.file)]
    if compiled is None or not library or not calls:
        return None
    call = calls[-1]
    return Finding(
        kind=KIND.id,
        code=TYPE_CHECK,
        severity=KIND.severity,
        message=f"The type check of `{library}` fails below `torch.compile`, which traces the check, too: {_first_line(raised)}",
        explanation="Dynamo answers `isinstance(x, T)` by the class of the tensor alone. A type that says a shape or a dtype has its own `__instancecheck__`, which is not asked, so that the check fails for every tensor. The graph breaks at this call are in the code that reports the failure.",
        hints=(*hints_for(library), CHECK),
        link=None,
        file=call.file,
        range=call.range or _range(texts.get(call.file, ""), call.line, ""),
        count=1,
        compiles=(),
        related=(),
    )


# --- words ------------------------------------------------------------------------------------------------------------


def _finding(
    raised: Raised,
    failed: _Failed,
    calls: Sequence[StackFrame],
    inside: Sequence[StackFrame],
    texts: Mapping[str, str],
) -> Finding | None:
    call = calls[-1] if calls else None
    if len(failed.origins) == 1:
        file, line = failed.origins[0].file, failed.origins[0].line
        where = _range(texts.get(file, ""), line, failed.operation)
    elif call is not None:
        file, where = call.file, call.range or _range(texts.get(call.file, ""), call.line, "")
    elif failed.origins:
        file, where = failed.origins[0].file, _range(texts.get(failed.origins[0].file, ""), failed.origins[0].line, "")
    else:
        return None
    related = [
        call_in(each.file, each.range or _range(texts.get(each.file, ""), each.line, ""), each.function)
        for each in calls
        if (each.file, each.line) != (file, where.start.line)
    ]
    if len(failed.origins) > 1:
        related = [
            Related(one.file, _range(texts.get(one.file, ""), one.line, ""), f"part of `{failed.operation}`")
            for one in sorted(failed.origins)
        ] + related
    if inside:
        last = inside[-1]
        whole = last.range or _range(texts.get(last.file, ""), last.line, "")
        related.insert(0, Related(last.file, whole, f"raised here, in `{last.function}`"))
    return Finding(
        kind=KIND.id,
        code=raised.type,
        severity=KIND.severity,
        message=_message(raised, failed),
        explanation=_explanation(raised.text),
        hints=(CHECK,),
        link=None,
        file=file,
        range=where,
        count=1,
        compiles=tuple(compile.id for compile in failed.compiles),
        related=tuple(related),
    )


def _message(raised: Raised, failed: _Failed) -> str:
    names = {compile.title for compile in failed.compiles}
    of = f" of `{names.pop()}`" if len(names) == 1 else ""
    ids = ", ".join(compile.id for compile in failed.compiles[:4]) + (", …" if len(failed.compiles) > 4 else "")
    ids = f" ({ids})" if ids else ""
    operation = f", in `{failed.operation}`" if failed.operation else ""
    how = f"Killed by {raised.type}" if raised.is_signal else f"{raised.type} raised"
    text = f": {text.rstrip('.')}" if (text := _first_line(raised)) else ""
    return f"{how} inside compiled code{of}{ids}{operation}{text}."


def outcome_message(raised: Raised, finding: Finding) -> str:
    """How a run ended with an exception inside compiled code, with the user's line in place of the line of generated
    code."""
    text = f": {text}" if (text := _first_line(raised)) else ""
    return f"{raised.type}{text} ({finding.file}:{finding.range.start.line})"


def _first_line(raised: Raised) -> str:
    """Without the file of generated code that an error of a C++ kernel begins with."""
    return re.sub(r"^kernel, \S+:\d+, ", "", raised.text.strip().split("\n")[0])


def _explanation(text: str) -> str:
    lines = text.strip().split("\n")[1:]
    more = [f"… ({len(lines) - _EXPLAINED_LINES} more lines)"] if len(lines) > _EXPLAINED_LINES else []
    return bounded("\n".join([*lines[:_EXPLAINED_LINES], *more]))


def _range(text: str, line: int, operation: str) -> Range:
    """The call of an operation in a line; the line if there is not exactly one."""
    try:
        tree: ast.AST | None = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = None
    parts = {operation, *re.split(r"[._]", operation)}
    calls = [
        node
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.Call) and node.lineno == line and _last_name(node.func) in parts
    ]
    lines = text.split("\n")
    call = calls[0] if len(calls) == 1 else None
    if call is not None and call.end_lineno is not None and call.end_col_offset is not None:
        return Range(_position(lines, line, call.col_offset), _position(lines, call.end_lineno, call.end_col_offset))
    shown = lines[line - 1] if 1 <= line <= len(lines) else ""
    indent = len(shown) - len(shown.lstrip())
    return Range(Position(line, indent), Position(line, max(len(shown.rstrip()), indent + 1)))


def _last_name(function: ast.expr) -> str:
    """``relu`` of ``torch.relu``."""
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def _position(lines: Sequence[str], line: int, byte: int) -> Position:
    return Position(line, len(lines[line - 1].encode("utf-8", "surrogatepass")[:byte].decode("utf-8", "replace")))
