"""What a statement writes, logs or warns: left out while compiling."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m
from irscope.protocol import Finding

from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Source

_LEVELS = frozenset({
    "debug", "info", "warning", "warn", "error", "critical", "exception", "log", "warning_once", "set_postfix",
    "set_description",
})  # fmt: skip
"""Methods of loggers and of progress bars."""
_FUNCTIONS = ("print", "logging.", "warnings.", "pprint.", "tqdm.")


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    torch = source.module_name("torch")
    statements = source.on_line(finding.range.start.line, cst.SimpleStatementLine)
    if torch is None or not statements or source.function(statements[0]) is None:
        return
    statement = statements[0]
    if m.matches(statement, m.SimpleStatementLine(body=[m.Expr(value=m.Call())])) and _writes(source, statement):
        made = cst.ensure_type(cst.parse_statement(f"if not {torch}.compiler.is_compiling():\n    pass\n"), cst.If)
        guarded = made.with_changes(
            leading_lines=statement.leading_lines,
            body=cst.IndentedBlock([statement.with_changes(leading_lines=[])]),
        )
        yield Proposal(
            "Leave it out while compiling",
            "Then it is not done in compiled runs.",
            source.changed({statement: guarded}),
        )


def _writes(source: Source, statement: cst.SimpleStatementLine) -> bool:
    """Whether the call of a statement is known to write only."""
    expression = cst.ensure_type(statement.body[0], cst.Expr)
    call = cst.ensure_type(expression.value, cst.Call)
    if isinstance(call.func, cst.Attribute) and call.func.attr.value in _LEVELS:
        return True
    name = source.full_name(call.func)
    return any(name == one or (one.endswith(".") and name.startswith(one)) for one in _FUNCTIONS)


FAMILY = Family("output", ("graph-break",), _propose)
