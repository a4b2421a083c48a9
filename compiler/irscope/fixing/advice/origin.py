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
from irscope.vocabulary.patterns import pattern

_COMPUTED = pattern(r'# File "(?P<file>[^"]+)", line (?P<line>\d+), in \S+?, code: (?P<code>.*)')
_ATTRIBUTED = pattern(
    r'^  \w*Tensor\w*\(.*\) originated from:\n  File "(?P<file>[^"]+)", line (?P<line>\d+)\n\s*(?P<code>.*)$',
    re.MULTILINE,
)
_LONGEST_CHAIN = 3
Assignment = ast.Assign | ast.AugAssign | ast.AnnAssign


def origin_of(spot: Spot, value: ast.expr) -> str:
    """A sentence on where a value comes from; empty if nothing more is known than what the line shows."""
    steps = list(_assignments(spot, value))
    said = {line for _, line in steps}
    here = spot.context.range.start.line
    for file, line, code in _places_of_tensors(spot.context.payload, spot.context.inlined):
        elsewhere = os.path.realpath(file) != os.path.realpath(spot.context.file)
        if is_user_file(file) and (elsewhere or line not in {here, *said}):
            place = f"{os.path.basename(file)}, line {line}" if elsewhere else f"line {line}"
            steps.append((f"`{code}` ({place})", line))
    if not steps:
        return ""
    return f"The value comes from {', and that from '.join(dict.fromkeys(text for text, _ in steps))}."


def _assignments(spot: Spot, value: ast.expr) -> Iterator[tuple[str, int]]:
    """The last assignments, before the line, to the names in a value, the nearest first."""
    if not spot.functions:
        return
    statements = spot.source.all(ast.stmt, spot.functions[0])
    names, seen, before = loaded_names(value), set[str](), value.lineno
    for _ in range(_LONGEST_CHAIN):
        made = [
            (name, statement, statement.value)
            for statement in statements
            if isinstance(statement, Assignment) and statement.value is not None and statement.lineno < before
            for target in targets_of(statement)
            for name in names
            if name not in seen and name in bound_names(target)
        ]
        if not made:
            break
        name, assignment, computed = made[-1]
        seen.add(name)
        before = assignment.lineno
        first_line, *_ = spot.text(assignment).split("\n")
        yield f"`{first_line}` (line {before})", before
        names = loaded_names(computed)
    arguments = bound_names(spot.functions[0].args) - seen - {"self", "cls", "ctx"}
    for name in [name for name in names if name in arguments][:1]:
        yield f"the argument `{name}`", spot.functions[0].lineno


def _places_of_tensors(payload: str, inlined: bool) -> Iterator[tuple[str, int, str]]:
    """Where the tensors of a break were computed: files, lines, code.  PyTorch attributes the values of a caller, not those
    of an inlined function."""
    for places in (_COMPUTED,) if inlined else (_COMPUTED, _ATTRIBUTED):
        for match in places.finditer(payload):
            yield match["file"], int(match["line"]), match["code"].strip()
