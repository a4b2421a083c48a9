"""``with`` statements that Dynamo cannot enter."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m
from irscope.protocol import Finding, FixMethod

from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Source


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    node = source.at(finding.range)
    statement = source.first_around(node, cst.With) if node is not None else None
    torch = source.module_name("torch")
    if statement is None or torch is None or not isinstance(statement.body, cst.IndentedBlock):
        return
    if source.can_be_left_out(statement):
        yield Proposal(
            FixMethod.LEAVE_OUT.title, "Then it is not done in compiled runs.",
            source.changed({statement: _guarded(source, statement, torch)}), method=FixMethod.LEAVE_OUT,
        )  # fmt: skip
    names = {source.full_name(item.item.func) for item in statement.items if isinstance(item.item, cst.Call)}
    if names == {"warnings.catch_warnings"} and statement.items[0].asname is None:
        kept = [one for one in statement.body.body if not _is_about_warnings(source, one)]
        if kept:
            kept[0] = kept[0].with_changes(
                leading_lines=[*statement.leading_lines, *getattr(kept[0], "leading_lines", ())]
            )
            yield Proposal(
                "Leave the filter of warnings out", "Warnings are then shown; filter them around the call of the compiled code.",
                source.changed({statement: cst.FlattenSentinel(kept)}),
            )  # fmt: skip


def _guarded(source: Source, statement: cst.With, torch: str) -> cst.BaseStatement:
    made = cst.ensure_type(cst.parse_statement(f"if not {torch}.compiler.is_compiling():\n    pass\n"), cst.If)
    inner = statement.with_changes(leading_lines=[])
    return made.with_changes(leading_lines=statement.leading_lines, body=cst.IndentedBlock([inner]))


def _is_about_warnings(source: Source, statement: cst.BaseStatement) -> bool:
    return m.matches(statement, m.SimpleStatementLine(body=[m.Expr(value=m.Call())])) and any(
        source.full_name(call.func).startswith("warnings.")
        for call in m.findall(statement, m.Call())
        if isinstance(call, cst.Call)
    )


FAMILY = Family("contexts", ("graph-break",), _propose)
