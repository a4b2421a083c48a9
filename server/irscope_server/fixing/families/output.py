"""What a statement writes, logs or warns: printed from the graph, or left out while compiling."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m
from irscope.protocol import Finding, FixMethod

from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Source, in_place_of

_LEFT_OUT = FixMethod.LEAVE_OUT
_CAVEAT = "Then it is not done in compiled runs."
_CALL = m.SimpleStatementLine(body=[m.Expr(value=m.Call())])


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    torch = source.module_name("torch")
    if torch is not None:
        yield from _decision(source, finding, torch)
    statements = source.on_line(finding.range.start.line, cst.SimpleStatementLine)
    if torch is None or not statements or source.function(statements[0]) is None:
        return
    statement = statements[0]
    if m.matches(statement, _CALL) and source.can_be_left_out(statement):
        printed = _in_graph(source, statement, torch)
        if printed is not None:
            yield Proposal(
                "Print from the graph",
                "`torch._higher_order_ops.print` is not a public name. What requires grad is printed without `grad_fn`.",
                source.changed({statement: in_place_of(statement, printed)}),
            )
        made = cst.ensure_type(cst.parse_statement(f"if not {torch}.compiler.is_compiling():\n    pass\n"), cst.If)
        guarded = made.with_changes(
            leading_lines=statement.leading_lines,
            body=cst.IndentedBlock([statement.with_changes(leading_lines=[])]),
        )
        yield Proposal(_LEFT_OUT.title, _CAVEAT, source.changed({statement: guarded}), method=_LEFT_OUT)


def _decision(source: Source, finding: Finding, torch: str) -> Iterator[Proposal]:
    """``if x.isnan().any(): warnings.warn(…)``: without the output there is nothing to decide."""
    node = source.at(finding.range)
    decision = source.first_around(node, cst.If) if node is not None else None
    if decision is None or source.function(decision) is None or isinstance(source.parent(decision), cst.If):
        return
    if decision.orelse is not None or source.line(decision) != finding.range.start.line:
        return
    if source.can_be_left_out(decision):
        test = source.code(decision.test)
        loose = isinstance(decision.test, cst.BooleanOperation) and isinstance(decision.test.operator, cst.Or)
        loose = loose or isinstance(decision.test, (cst.IfExp, cst.NamedExpr, cst.Lambda))
        test = f"({test})" if loose and not decision.test.lpar else test
        made = cst.parse_expression(f"not {torch}.compiler.is_compiling() and {test}")
        yield Proposal(_LEFT_OUT.title, _CAVEAT, source.changed({decision.test: made}), method=_LEFT_OUT)


def _in_graph(source: Source, statement: cst.SimpleStatementLine, torch: str) -> str | None:
    """``print("mean", m)`` as the operator that prints from the graph; None if that takes another form of print."""
    call = cst.ensure_type(cst.ensure_type(statement.body[0], cst.Expr).value, cst.Call)
    if source.full_name(call.func) != "print" or any(arg.star or arg.keyword is not None for arg in call.args):
        return None
    words, values = list[str](), list[str]()
    for arg in call.args:
        if not _add_text(source, arg.value, words, values):
            return None
    text = " ".join(words)
    return f"{torch}._higher_order_ops.print({', '.join([_quoted(text), *values])})" if values else None


def _add_text(source: Source, node: cst.BaseExpression, words: list[str], values: list[str]) -> bool:
    """Adds what an argument of print is in a format string, and its values; False if that cannot be said."""
    if isinstance(node, cst.SimpleString):
        text = node.evaluated_value
        if not isinstance(text, str):
            return False
        words.append(_escaped(text))
        return True
    if not isinstance(node, cst.FormattedString):
        words.append("{}")
        values.append(source.code(node))
        return True
    made = ""
    for part in node.parts:
        if isinstance(part, cst.FormattedStringText):
            if "\\" in part.value:
                return False
            made += part.value  # braces are doubled there, too
            continue
        expression = cst.ensure_type(part, cst.FormattedStringExpression)
        spec = "".join(one.value for one in expression.format_spec or () if isinstance(one, cst.FormattedStringText))
        if expression.equal is not None or expression.conversion or len(expression.format_spec or ()) > bool(spec):
            return False
        made += f"{{:{spec}}}" if spec else "{}"
        values.append(source.code(expression.expression))
    words.append(made)
    return True


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _quoted(text: str) -> str:
    """A string as code, with double quotes where they fit."""
    return f'"{text}"' if text.isprintable() and not set(text) & {'"', "\\"} else repr(text)


FAMILY = Family("output", ("graph-break",), _propose)
