"""Imports and settings that a changed text needs."""

from __future__ import annotations

import libcst as cst
from libcst.codemod import CodemodContext
from libcst.codemod.visitors import AddImportsVisitor

from irscope_server.fixing.parsing import parse_module
from irscope_server.fixing.source import Source, statements


def with_import(text: str, module: str, name: str | None = None) -> str:
    """A text with ``import module`` or ``from module import name``, where it has none."""
    context = CodemodContext()
    AddImportsVisitor.add_needed_import(context, module, name)
    return AddImportsVisitor(context).transform_module(parse_module(text)).code


def above(source: Source, node: cst.CSTNode, text: str, changes: dict[cst.CSTNode, object] | None = None) -> str:
    """A text with statements above the top-level statement that a node is in, and with other changes."""
    top = next(one for one in source.around(node) if source.parent(one) is source.module)
    changed = source.changed(changes or {})  # type: ignore[arg-type]
    body = list(parse_module(changed).body)
    number = next(n for n, one in enumerate(source.module.body) if one is top)
    made = statements(text)
    leading = getattr(body[number], "leading_lines", ())
    made[0] = made[0].with_changes(leading_lines=leading)
    defines = any(isinstance(one, (cst.FunctionDef, cst.ClassDef)) for one in (made[0], body[number]))
    spare = [cst.EmptyLine(indent=False)] * (2 if defines else 0)
    comments = [line for line in leading if line.comment is not None]
    if comments:  # they are about the function
        made[0] = made[0].with_changes(leading_lines=[line for line in leading if line.comment is None])
    if isinstance(made[0], cst.FunctionDef) and sum(line.comment is None for line in leading) < len(spare):
        made[0] = made[0].with_changes(leading_lines=spare)
    body[number] = body[number].with_changes(leading_lines=[*spare, *comments])
    return parse_module(changed).with_changes(body=[*body[:number], *made, *body[number:]]).code


def at_top(source: Source, text: str) -> str:
    """A text with statements after the imports at its top."""
    body = list(source.module.body)
    number = 0
    for n, one in enumerate(body):
        if isinstance(one, cst.SimpleStatementLine) and isinstance(one.body[0], (cst.Import, cst.ImportFrom)):
            number = n + 1
        elif isinstance(one, (cst.FunctionDef, cst.ClassDef)):
            break
    made = statements(text)
    made[0] = made[0].with_changes(leading_lines=[cst.EmptyLine(indent=False)])
    return source.module.with_changes(body=[*body[:number], *made, *body[number:]]).code
