"""``x.requires_grad = True`` on the way, as gradient checkpointing wants it: left out while compiling.

A graph cannot change what requires a gradient.  Only the flag of a tensor that the function has made may be left out, since
nobody else can read it.  It needs no flag where parameters require gradients anyway; where a result
loses its gradient without it, the proof sees that.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m
from irscope.protocol import Finding
from irscope.usercode.effects import is_made_before

from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Source

_TITLE = "Leave the gradient flag out while compiling"
_CAVEAT = "Compiled code then keeps no gradient of this tensor."
_METHOD = m.Attribute(attr=m.Name("requires_grad_"))
_FLAG = m.OneOf(
    m.Expr(value=m.Call(func=_METHOD, args=[])),
    m.Expr(value=m.Call(func=_METHOD, args=[m.Arg(m.Name("True"))])),
    m.Assign(targets=[m.AssignTarget(target=m.Attribute(attr=m.Name("requires_grad")))], value=m.Name("True")),
)


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    torch = source.module_name("torch")
    lines = source.on_line(finding.range.start.line, cst.SimpleStatementLine)
    if torch is None or not lines or source.function(lines[0]) is None:
        return
    statement = lines[0]
    if not m.matches(statement, m.SimpleStatementLine(body=[_FLAG])):
        return
    flag = cst.ensure_type(m.findall(statement, m.Attribute())[0], cst.Attribute)
    if not is_made_before(source.text, source.code(flag.value), source.line(statement)):
        return  # others may have the tensor, too, and read its flag
    plain = f"not {torch}.compiler.is_compiling()"
    block = source.parent(statement)
    decision = source.parent(block) if isinstance(block, cst.IndentedBlock) and len(block.body) == 1 else None
    if isinstance(decision, cst.If) and decision.orelse is None:
        test = source.code(decision.test)
        loose = isinstance(decision.test, (cst.IfExp, cst.NamedExpr, cst.Lambda))
        loose = loose or m.matches(decision.test, m.BooleanOperation(operator=m.Or()))
        test = f"({test})" if loose and not decision.test.lpar else test
        made: cst.CSTNode = cst.parse_expression(f"{test} and {plain}")
        yield Proposal(_TITLE, _CAVEAT, source.changed({decision.test: made}))
        return
    guard = cst.ensure_type(cst.parse_statement(f"if {plain}:\n    pass\n"), cst.If)
    inner = cst.IndentedBlock([statement.with_changes(leading_lines=[])])
    yield Proposal(
        _TITLE,
        _CAVEAT,
        source.changed({statement: guard.with_changes(leading_lines=statement.leading_lines, body=inner)}),
    )


FAMILY = Family("gradient flags", ("graph-break",), _propose, ("GB0206", "GB0125"))
