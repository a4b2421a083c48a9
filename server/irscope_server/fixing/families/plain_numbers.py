"""NumPy functions of plain numbers: Dynamo makes tensors of their results, and what is decided by these breaks the graph.
Python's own functions give Python numbers."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m
from irscope.protocol import Finding

from irscope_server.fixing.imports import with_import
from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Change, Source

_TITLE = "Compute the number with Python instead of NumPy"
_CAVEAT = "It is for numbers and flat lists of numbers, not for arrays of several dimensions."
_PLAIN = {
    "sum": ("sum", 1), "prod": ("math.prod", 1), "max": ("max", 1), "min": ("min", 1), "lcm": ("math.lcm", 2),
    "gcd": ("math.gcd", 2), "sqrt": ("math.sqrt", 1), "log": ("math.log", 1), "log2": ("math.log2", 1),
    "exp": ("math.exp", 1), "maximum": ("max", 2), "minimum": ("min", 2),
}  # fmt: skip
"""What Python calls a function of NumPy, and how many arguments both take."""
_WHOLE = {"floor": "math.floor", "ceil": "math.ceil"}
"""Python's give an int: only where one is made of the result at once, ``int(np.ceil(x))``."""


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    node = source.at(finding.range)
    if isinstance(node, cst.If):
        node = node.test
    if node is None or source.function(node) is None:
        return
    around = source.statement(node)
    whole = around if isinstance(around, cst.SimpleStatementLine) else node
    for place in (node, whole, *_made(source, whole)):
        changes, needs_math = _changes(source, place)
        if changes:
            text = source.changed(changes)
            yield Proposal(_TITLE, _CAVEAT, with_import(text, "math") if needs_math else text)
            return


def _changes(source: Source, place: cst.CSTNode) -> tuple[dict[cst.CSTNode, Change], bool]:
    """The calls at a place as Python's functions, and whether they need the module ``math``."""
    found: dict[cst.CSTNode, Change] = {}
    needs_math = False
    for call in m.findall(place, m.Call(func=m.Attribute())):
        assert isinstance(call, cst.Call)
        name, plain = source.full_name(call.func), ""
        if name.startswith("numpy.") and not any(arg.star or arg.keyword is not None for arg in call.args):
            plain, count = _PLAIN.get(name.removeprefix("numpy."), ("", 0))
            if not plain and _is_made_an_int(source, call):
                plain, count = _WHOLE.get(name.removeprefix("numpy."), ""), 1
            plain = plain if len(call.args) == count else ""
        if not plain or _is_below(source, call, found) or _hides(source, plain):
            continue
        found[call] = call.with_changes(func=cst.parse_expression(plain))
        needs_math = needs_math or plain.startswith("math.")
    return found, needs_math


def _is_made_an_int(source: Source, call: cst.Call) -> bool:
    arg = source.parent(call)
    return isinstance(arg, cst.Arg) and m.matches(source.parent(arg) or arg, m.Call(func=m.Name("int"), args=[m.Arg()]))


def _is_below(source: Source, call: cst.Call, found: dict[cst.CSTNode, Change]) -> bool:
    return any(one in found for one in source.around(call))


def _hides(source: Source, plain: str) -> bool:
    """Whether the file has another thing of the name of Python's function."""
    head, dot, _ = plain.partition(".")
    if dot:
        return head in source.names and source.module_name(head) != head
    return bool(m.findall(source.module, m.AssignTarget(target=m.Name(head)) | m.Param(name=m.Name(head))))


def _made(source: Source, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Where the names that a place reads get their values: in the function, and in the functions that it calls for them."""
    function = source.function(node)
    read = [one.value for one in m.findall(node, m.Name()) if isinstance(one, cst.Name)]
    for assign in m.findall(function, m.Assign(targets=[m.AssignTarget(target=m.Name())])) if function else ():
        assert isinstance(assign, cst.Assign)
        if source.code(assign.targets[0].target) not in read:
            continue
        yield assign.value
        if isinstance(assign.value, cst.Call) and isinstance(assign.value.func, cst.Name):
            called = assign.value.func.value
            yield from (
                one for one in source.module.body if isinstance(one, cst.FunctionDef) and one.name.value == called
            )


FAMILY = Family("plain numbers", ("graph-break",), _propose, ("GB0170", "GB0033", "GB0124", "data-dependent-guard"))
