"""Sizes and numbers that vary from call to call: dynamic from the start, or marked before the call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst
import libcst.matchers as m
from irscope.protocol import Finding, FixMethod, RecompilationFacts

from irscope_server.fixing.marking import marked_at_call
from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Change, Source, statements

_MARK = FixMethod.MARK_SIZES
_MARK_CAVEAT = "It raises where the code fixes such a size."
_UNBACKED = "Mark the size as unbacked, before the call"
_UNBACKED_CAVEAT = "It raises where the code depends on the size."
_DYNAMIC = FixMethod.DYNAMIC_SIZES
_DYNAMIC_CAVEAT = "All sizes are then dynamic from the first compile. Code for fixed sizes can be faster."


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    yield from _dynamic(source)
    yield from _marked(source, finding)
    text = marked_at_call(source, finding)
    if text is not None:
        yield Proposal(_MARK.title, _MARK_CAVEAT, text, method=_MARK)


def _dynamic(source: Source) -> Iterator[Proposal]:
    """``dynamic=True`` for the one compile of the file."""
    found = compiling(source)
    if len(found) == 1:
        text = source.changed(with_dynamic(found, "True"))
        yield Proposal(_DYNAMIC.title, _DYNAMIC_CAVEAT, text, method=_DYNAMIC)


def with_dynamic(compiled: Sequence[cst.CSTNode], value: str) -> dict[cst.CSTNode, Change]:
    """Calls and decorators of ``torch.compile`` with this value of ``dynamic``."""
    changes: dict[cst.CSTNode, Change] = {}
    for one in compiled:
        if isinstance(one, cst.Decorator):
            changes[one.decorator] = cst.Call(one.decorator, [_keyword("dynamic", value)])
            continue
        assert isinstance(one, cst.Call)
        given = [arg for arg in one.args if arg.keyword is not None and arg.keyword.value == "dynamic"]
        if given:
            changes |= {arg.value: cst.Name(value) for arg in given}
        else:
            changes[one] = one.with_changes(args=[*one.args, _keyword("dynamic", value)])
    return changes


def _keyword(name: str, value: str) -> cst.Arg:
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    return cst.Arg(cst.Name(value), keyword=cst.Name(name), equal=equal)


def compiling(source: Source) -> list[cst.CSTNode]:
    """The calls of ``torch.compile`` and its bare decorators."""
    found = [node for node in m.findall(source.module, m.Call() | m.Decorator()) if _compiles(source, node)]
    return [one for one in found if not isinstance(one, cst.Decorator) or not isinstance(one.decorator, cst.Call)]


def _compiles(source: Source, node: cst.CSTNode) -> bool:
    if isinstance(node, cst.Decorator):
        return source.full_name(node.decorator) == "torch.compile"
    if not isinstance(node, cst.Call):
        return False
    if source.full_name(node.func) == "torch.compile":
        return True
    method = m.matches(node.func, m.Attribute(value=m.Name(), attr=m.Name("compile")))
    head = source.full_name(node.func).partition(".")[0]
    return method and head not in source.imported_names and all(arg.keyword is not None for arg in node.args)


def _marked(source: Source, finding: Finding) -> Iterator[Proposal]:
    """Marks before the first call; `irscope.findings.recompiling.sizes` works out which."""
    marks = finding.facts.marks if isinstance(finding.facts, RecompilationFacts) else None
    lines = source.on_line(marks.line, cst.SimpleStatementLine) if marks is not None else []
    if marks is None or not lines:
        return
    call = lines[0]
    changed = call.visit(_Passed(source, {code: name for name, code in marks.made}))
    made = statements("\n".join(marks.statements))
    made[0] = made[0].with_changes(leading_lines=call.leading_lines)
    assert isinstance(changed, cst.SimpleStatementLine)
    made.append(changed.with_changes(leading_lines=[]))
    text = source.changed({call: cst.FlattenSentinel(made)})
    if marks.are_unbacked:
        yield Proposal(_UNBACKED, _UNBACKED_CAVEAT, text)
    else:
        yield Proposal(_MARK.title, _MARK_CAVEAT, text, method=_MARK)


class _Passed(cst.CSTTransformer):
    """Passes names in the place of the expressions that they were made from."""

    def __init__(self, source: Source, names: dict[str, str]) -> None:
        super().__init__()
        self._source, self._names = source, names

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        name = self._names.get(self._source.code(original_node.value))
        return updated_node if name is None else updated_node.with_changes(value=cst.Name(name))


FAMILY = Family("sizes", ("recompilation",), _propose, ("recompile-size", "recompile-value", "recompile-condition"))
