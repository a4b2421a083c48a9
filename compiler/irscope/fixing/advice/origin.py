"""Where a value comes from: by the assignments in the function, and by PyTorch's own attribution of a tensor."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator

from irscope.fixing.advice.spot import Spot
from irscope.fixing.source import bound_names, loaded_names
from irscope.usercode.bindings import targets_of
from irscope.usercode.user_files import is_user_file

_COMPUTED = re.compile(r'# File "(?P<file>[^"]+)", line (?P<line>\d+), in \S+?, code: (?P<code>.*)')
_ATTRIBUTED = re.compile(
    r'^  \w*Tensor\w*\(.*\) originated from:\n  File "(?P<file>[^"]+)", line (?P<line>\d+)\n\s*(?P<code>.*)$',
    re.MULTILINE,
)
_LONGEST_CHAIN = 3


def origin_of(spot: Spot, value: ast.expr) -> str:
    """A sentence on where a value comes from; empty if nothing more is known than what the line shows."""
    steps = list(_assignments(spot, value))
    said = {line for _, line in steps}
    here = spot.context.range.start.line
    for file, line, code in _attributed(spot.context.payload):
        elsewhere = os.path.realpath(file) != os.path.realpath(spot.file)
        if is_user_file(file) and (elsewhere or line not in {here, *said}):
            place = f"{os.path.basename(file)}, line {line}" if elsewhere else f"line {line}"
            steps.append((f"`{code}` ({place})", line))
    if not steps:
        return ""
    return f"The value comes from {', and that from '.join(dict.fromkeys(text for text, _ in steps))}."


def _assignments(spot: Spot, value: ast.expr) -> Iterator[tuple[str, int]]:
    """The last assignments before the line of the names that a value is made of, the nearest first."""
    if not spot.functions:
        return
    function, before = spot.functions[0], value.lineno
    names, seen = loaded_names(value), set[str]()
    for _ in range(_LONGEST_CHAIN):
        found = _last_assignment(function, [name for name in names if name not in seen], before)
        if found is None:
            break
        name, statement, source = found
        seen.add(name)
        text = spot.text(statement).split("\n")[0]
        yield f"`{text}` (line {statement.lineno})", statement.lineno
        names, before = loaded_names(source), statement.lineno
    arguments = bound_names(function.args)
    for name in names:
        if name in arguments and name not in seen and name != "self":
            yield f"the argument `{name}`", function.lineno
            return


def _last_assignment(
    function: ast.AST, names: list[str], before: int
) -> tuple[str, ast.Assign | ast.AugAssign | ast.AnnAssign, ast.expr] | None:
    best: tuple[str, ast.Assign | ast.AugAssign | ast.AnnAssign, ast.expr] | None = None
    for node in ast.walk(function):
        if not isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) or node.value is None:
            continue
        if node.lineno >= before or (best is not None and node.lineno <= best[1].lineno):
            continue
        stored = {inner.id for target in targets_of(node) for inner in ast.walk(target) if isinstance(inner, ast.Name)}
        name = next((name for name in names if name in stored), None)
        if name is not None:
            best = name, node, node.value
    return best


def _attributed(payload: str) -> Iterator[tuple[str, int, str]]:
    """The places that PyTorch names as where a tensor was computed: file, line, code."""
    for pattern in (_COMPUTED, _ATTRIBUTED):
        for match in pattern.finditer(payload):
            yield match["file"], int(match["line"]), match["code"].strip()
