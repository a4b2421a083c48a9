"""Sizes that are fixed because a message says them: the text is made in each trace, though the error may never come."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.source import Source, loaded_names, parse_expression
from irscope.protocol import Finding
from irscope.usercode.bindings import last_word

_TITLE = "Leave the size out of the message of the check"
_CAVEAT = "The error then does not say the size."
_NAMES = ("_assert", "check")
_METHODS = ("_assert", "_check")
_FIELD = re.compile(r"\{\{|\}\}|\{(?:[^{}]|\{[^{}]*\})*\}")
"""A doubled brace of a formatted string, or what it formats."""
_PREFIX = re.compile(r"([rR]?)[fF]([rR]?)")


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    for node in source.on_line(finding.range.start.line, ast.JoinedStr):
        call = source.first_around(node, ast.Call)
        if call is None or last_word(call.func) not in (_NAMES if isinstance(call.func, ast.Name) else _METHODS):
            continue
        if node in [*call.args, *(keyword.value for keyword in call.keywords)]:
            yield Proposal(_TITLE, _CAVEAT, source.changed({node: _without_sizes(source, node)}))


def _without_sizes(source: Source, node: ast.JoinedStr) -> str:
    """The code of a message with dots in the place of values of the function's; a module's own values are constants."""
    values = [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
    code, stays = source.code(node), [set(loaded_names(value)) <= {"self"} for value in values]
    fields = [field for field in _FIELD.finditer(code) if field[0] not in ("{{", "}}")]
    for field, is_kept in reversed(list(zip(fields, stays, strict=True))):
        code = code if is_kept else f"{code[: field.start()]}…{code[field.end() :]}"
    if any(stays) or not stays:
        return code
    plain = _PREFIX.sub(r"\1\2", code, count=1).replace("{{", "{").replace("}}", "}")
    texts = [part.value for part in getattr(parse_expression(code), "values", ()) if isinstance(part, ast.Constant)]
    return plain if [getattr(parse_expression(plain), "value", None)] == texts else code


_SCRIPT = """
import torch

@torch.compile(backend="eager", dynamic=True)
def f(x):
    torch._assert(x.shape[0] > 1, MESSAGE)
    return x + 1

f(torch.ones(4))
"""
_EXAMPLES = tuple(
    Example(_SCRIPT.replace("MESSAGE", before), _SCRIPT.replace("MESSAGE", after), is_script=True)
    for before, after in (
        ("f'{x.shape[0]} is too few'", "'… is too few'"),
        ("f'{x.shape[0]:>3} of {{x}}'", "'… of {x}'"),
    )
)
RULE = Rule("messages", ("specialization",), _propose, examples=_EXAMPLES)
