"""`torch.nonzero_static` in the place of ``nonzero``: the index has as many rows as the mask has elements, whatever is in it.

The rows that are too much point to the first element.  So what adds up rows gets zeros in their place, and what counts
rows counts the mask.  Other uses of the index are left as they are: the trial says whether the results are the same.

Where the text asks whether the index is empty, the answer becomes a tensor, and another family goes on with the branch.
Only where an empty index skips what adds rows up, nothing needs to be asked: zeros are added then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst
import libcst.matchers as m
from irscope.protocol import Finding

from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Source, in_place_of

_TITLE = "Give the index a fixed size with `torch.nonzero_static`, and leave out what is too much"
_CAVEAT = "As many rows are computed as the mask has elements, however few it chooses."
_SHAPES = ("", "[:, None]")
"""Of the rows that count, for results of one dimension and of two: the tree does not say which it is."""


@dataclass(frozen=True)
class _Found:
    """The call that is replaced, the mask in it, and whether it gives a tuple with an index for each dimension."""

    call: cst.Call
    mask: cst.BaseExpression
    is_tuple: bool


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    torch = source.module_name("torch")
    for line in source.on_line(finding.range.start.line, cst.SimpleStatementLine):
        function = source.function(line)
        assign = line.body[0] if len(line.body) == 1 else None
        if torch is None or function is None or not isinstance(assign, cst.Assign) or len(assign.targets) != 1:
            continue
        found = next((one for call in m.findall(assign.value, m.Call()) if (one := _selecting(source, call))), None)
        names = _names(assign.targets[0].target)
        if found is None or not names:
            continue
        derived = _derived(function, line, names)
        for shape in _SHAPES:
            using = _Using(source, (line, found), torch, derived, shape)
            changed = function.visit(using)
            if using.sums:
                yield Proposal(_TITLE, _CAVEAT, source.changed({function: changed}))


def _selecting(source: Source, call: cst.CSTNode) -> _Found | None:
    """``mask.nonzero()``, ``torch.nonzero(mask)``, ``mask.nonzero(as_tuple=True)`` and ``torch.where(mask)``."""
    if not isinstance(call, cst.Call):
        return None
    values = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
    as_tuple = [arg for arg in call.args if m.matches(arg, m.Arg(m.Name("True"), keyword=m.Name("as_tuple")))]
    if len(values) + len(as_tuple) != len(call.args):
        return None
    name = source.full_name(call.func)
    if name == "torch.where" and len(call.args) == len(values) == 1:
        return _Found(call, values[0], True)
    if name == "torch.nonzero" and len(values) == 1:
        return _Found(call, values[0], bool(as_tuple))
    if m.matches(call.func, m.Attribute(attr=m.Name("nonzero"))) and not values:
        assert isinstance(call.func, cst.Attribute)
        return _Found(call, call.func.value, bool(as_tuple))
    return None


def _names(target: cst.BaseExpression) -> frozenset[str]:
    elements = [each.value for each in target.elements] if isinstance(target, (cst.Tuple, cst.List)) else [target]
    return frozenset(one.value for one in elements if isinstance(one, cst.Name))


def _derived(function: cst.FunctionDef, line: cst.CSTNode, names: frozenset[str]) -> frozenset[str]:
    """The names of the index, and of what is made of it row by row."""
    for assign in m.findall(function.body, m.Assign()):
        assert isinstance(assign, cst.Assign)
        target = assign.targets[0].target
        adds_up = isinstance(assign.value, cst.Call) and _is_sum(assign.value)
        if isinstance(target, cst.Name) and not adds_up and _reads(assign.value, names) and not _counts(assign.value):
            names |= {target.value}
    return names


def _reads(node: cst.CSTNode, names: frozenset[str]) -> bool:
    return any(isinstance(one, cst.Name) and one.value in names for one in m.findall(node, m.Name()))


def _is_sum(call: cst.Call) -> bool:
    """Whether all rows are added up: ``rows.sum()``, ``rows.sum(0)``, ``rows.mean(0)``."""
    method = m.Attribute(attr=m.Name("sum") | m.Name("mean"))
    first = m.Arg(m.Integer("0"), keyword=None) | m.Arg(m.Integer("0"), keyword=m.Name("dim"))
    return m.matches(call, m.Call(func=method, args=[]) | m.Call(func=method, args=[first]))


def _is_total(call: cst.Call) -> bool:
    """Whether it is a loss that adds up: ``mse_loss(rows, wanted, reduction="sum")``."""
    total = m.SimpleString("'sum'") | m.SimpleString('"sum"')
    return any(m.matches(arg, m.Arg(total, keyword=m.Name("reduction"))) for arg in call.args)


def _adds_only(source: Source, test: cst.If, derived: frozenset[str]) -> bool:
    """Whether it is ``if …: continue``, and what it skips only adds rows to something."""
    body = test.body.body
    skips = len(body) == 1 and m.matches(body[0], m.SimpleStatementLine([m.Continue()]) | m.Continue())
    if not skips or test.orelse is not None:
        return False
    after = source.following(test)
    inside = frozenset(one for each in after for one in m.findall(each, m.Name()))
    function = source.function(test)
    for each in after:
        small = each.body[0] if isinstance(each, cst.SimpleStatementLine) and len(each.body) == 1 else None
        if isinstance(small, cst.Assign) and isinstance(target := small.targets[0].target, cst.Name):
            every = m.findall(function, m.Name(target.value)) if function is not None else ()
            if target.value not in derived or not all(one in inside or one is target for one in every):
                return False
        elif small is None or not m.matches(
            small, m.Expr(_ADDS) | m.AugAssign(target=m.Subscript(), operator=m.AddAssign())
        ):
            return False
    return bool(after)


_ADDS = m.Call(func=m.Attribute(attr=m.Name("index_add_") | m.Name("index_add")), args=[m.Arg(), m.Arg(), m.Arg()])
_SHAPE = m.Attribute(attr=m.Name("shape"))
_FIRST = [m.SubscriptElement(m.Index(m.Integer("0")))]


def _counts(node: cst.CSTNode) -> bool:
    """Whether it is the number of rows: ``index.shape[0]``, ``index.numel()``, ``index.size(0)``, ``len(index)``."""
    method = m.Call(func=m.Attribute(attr=m.Name("numel")), args=[])
    size = m.Call(func=m.Attribute(attr=m.Name("size")), args=[m.Arg(m.Integer("0"))])
    length = m.Call(func=m.Name("len"), args=[m.Arg()])
    return m.matches(node, method | size | length | m.Subscript(value=_SHAPE, slice=_FIRST))


class _Using(cst.CSTTransformer):
    """The function with an index of a fixed size.

    Parameters
    ----------
    at
        The statement that makes the index, and the call in it.
    derived
        Names of what has a row for each row of the index.
    shape
        What the rows that count are written with.
    """

    def __init__(
        self, source: Source, at: tuple[cst.CSTNode, _Found], torch: str, derived: frozenset[str], shape: str
    ) -> None:
        super().__init__()
        self._source, (self._line, self._found), self._torch, self._derived = source, at, torch, derived
        tests = [one for one in m.findall(source.module, m.If() | m.IfExp()) if self._asks(one)]
        self._kept = frozenset(
            one.test for one in tests if isinstance(one, cst.If) and _adds_only(source, one, derived)
        )
        self._is_asked = len(self._kept) < len(tests)
        self._in_kept = self._in_test = False
        self._is_name = isinstance(self._found.mask, cst.Name)
        self._mask = source.code(self._found.mask) if self._is_name else source.fresh("mask")
        self._there = source.fresh("is_chosen")
        self._rows = f"{self._there}{shape}"
        self.sums = 0

    # --- the index ----------------------------------------------------------------------------------------------------

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement] | cst.RemovalSentinel:
        if original_node is not self._line:
            return updated_node
        mask, torch = self._mask, self._torch
        named = "" if self._is_name else f"{mask} = {self._source.code(self._found.mask)}\n"
        fixed = f"{torch}.nonzero_static({mask}, size={mask}.numel(), fill_value=0)"
        call = cst.parse_expression(f"{fixed}.unbind(-1)" if self._found.is_tuple else fixed)
        made = original_node.deep_replace(self._found.call, call)
        assert isinstance(made, cst.SimpleStatementLine)
        index = cst.Module([made.with_changes(leading_lines=[])]).code
        there = f"{self._there} = {torch}.arange({mask}.numel(), device={mask}.device) < {mask}.count_nonzero()\n"
        placed = original_node.with_changes(trailing_whitespace=cst.TrailingWhitespace())
        lines = in_place_of(placed, named + index + there)
        assert isinstance(lines, cst.FlattenSentinel)
        return lines

    # --- its uses -----------------------------------------------------------------------------------------------------

    def _asks(self, node: cst.CSTNode) -> bool:
        """Whether a branch is taken by the number of rows."""
        assert isinstance(node, (cst.If, cst.IfExp))
        return any(_counts(one) and self._is_of_rows(one) for one in m.findall(node.test, m.Call() | m.Subscript()))

    def visit_If_test(self, node: cst.If) -> None:
        self._in_test, self._in_kept = True, node.test in self._kept

    def leave_If_test(self, node: cst.If) -> None:
        self._in_test = self._in_kept = False

    def leave_Subscript(self, original_node: cst.Subscript, updated_node: cst.Subscript) -> cst.BaseExpression:
        return self._counted(original_node, updated_node)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        func = updated_node.func
        if isinstance(func, cst.Attribute) and _is_sum(original_node) and self._is_of_rows(original_node.func):
            summed = updated_node.with_changes(func=func.with_changes(value=self._left_out(func.value)))
            if func.attr.value == "sum":
                return summed
            code = self._code(summed).replace(".mean(", ".sum(")
            return cst.parse_expression(f"({code} / {self._count()})")
        if _is_total(original_node):
            rows = [arg.keyword is None and self._is_of_rows(arg) for arg in original_node.args]
            both = zip(updated_node.args, rows, strict=True)
            return updated_node.with_changes(
                args=[arg.with_changes(value=self._left_out(arg.value)) if is_row else arg for arg, is_row in both]
            )
        if m.matches(original_node, _ADDS) and self._is_of_rows(original_node.args[2]):
            *others, last = updated_node.args
            return updated_node.with_changes(args=[*others, last.with_changes(value=self._left_out(last.value))])
        return self._counted(original_node, updated_node)

    def leave_AugAssign(self, original_node: cst.AugAssign, updated_node: cst.AugAssign) -> cst.BaseSmallStatement:
        """``out[index] += rows``: an index that comes twice would count once."""
        target = updated_node.target
        indexed = m.matches(original_node, m.AugAssign(target=m.Subscript(), operator=m.AddAssign()))
        if not indexed or not isinstance(target, cst.Subscript) or not self._is_of_rows(original_node.target):
            return updated_node
        index = [self._code(one.slice) for one in target.slice if m.matches(one.slice, m.Index(star=None))]
        if len(index) < len(target.slice):
            return updated_node
        added = self._code(self._left_out(updated_node.value))
        put = f"{self._code(target.value)}.index_put_(({', '.join(index)},), {added}, accumulate=True)"
        return cst.Expr(cst.parse_expression(put))

    def _is_of_rows(self, node: cst.CSTNode) -> bool:
        return _reads(node, self._derived)

    def _counted(self, node: cst.BaseExpression, updated: cst.BaseExpression) -> cst.BaseExpression:
        """The number of rows; it is the number of those that are chosen."""
        if not _counts(node) or not self._is_of_rows(node):
            return updated
        return updated if self._in_kept else cst.parse_expression(self._count())

    def _count(self) -> str:
        """Where the text asks first whether there is a row, it divides by one if there is none: both sides of the
        branch will be computed."""
        least = ".clamp(min=1)" if self._is_asked and not self._in_test else ""
        return f"{self._mask}.count_nonzero(){least}"

    def _left_out(self, rows: cst.BaseExpression) -> cst.BaseExpression:
        self.sums += 1
        bare = rows.with_changes(lpar=[], rpar=[])
        return cst.parse_expression(f"{self._torch}.where({self._rows}, {self._code(bare)}, 0)")

    def _code(self, node: cst.CSTNode) -> str:
        return self._source.module.code_for_node(node)


FAMILY = Family("indices", ("graph-break",), _propose, ("GB0036",))
