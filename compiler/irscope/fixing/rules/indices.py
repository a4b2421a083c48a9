"""`torch.nonzero_static` in the place of ``nonzero``: the index has as many rows as the mask has elements, whatever is in it.

The rows that are too much point to the first element.  So what adds up rows gets zeros in their place, and what counts
rows counts the mask.  Other uses of the index are left as they are: the trial says whether the results are the same.

Where the text asks whether the index is empty, the answer becomes a tensor, and another rule goes on with the branch.
Only where an empty index skips what adds rows up, nothing needs to be asked: zeros are added then.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.source import Source, whole
from irscope.fixing.syntax import Function
from irscope.protocol import Finding
from irscope.vocabulary.records import dataclass

_TITLE = "Give the index a fixed size with `torch.nonzero_static`, and leave out what is too much"
_CAVEAT = "As many rows are computed as the mask has elements, however few it chooses."
_SHAPES = ("", "[:, None]")
"""The shapes of the rows that count, for results of one dimension and of two: the tree does not say which it is."""


@dataclass(frozen=True)
class _Selection:
    """The call that is replaced, the mask in it, and whether it gives a tuple with an index for each dimension."""

    call: ast.Call
    mask: ast.expr
    is_tuple: bool


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    for assign in source.on_line(finding.range.start.line, ast.Assign):
        function = source.function(assign)
        if function is None or len(assign.targets) != 1:
            continue
        selection = next(filter(None, (_selection(source, call) for call in source.all(ast.Call, assign.value))), None)
        target = assign.targets[0]
        elements = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        names = {element.id for element in elements if isinstance(element, ast.Name)}
        if selection is None or not names:
            continue
        rows = _names_of_rows(source, function, names)
        for shape in _SHAPES:
            fixed = _FixedIndex(source, selection, rows, shape)
            text = fixed.text(function, assign)
            if fixed.sums:
                yield Proposal(_TITLE, _CAVEAT, text)


def _selection(source: Source, call: ast.Call) -> _Selection | None:
    """``mask.nonzero()``, ``torch.nonzero(mask)``, ``mask.nonzero(as_tuple=True)`` and ``torch.where(mask)``."""
    name = source.full_name(call.func)
    is_tuple = list(map(ast.unparse, call.keywords)) == ["as_tuple=True"]
    if call.keywords and not is_tuple:
        return None
    match call:
        case ast.Call(args=[ast.Starred(), *_]):
            return None
        case ast.Call(args=[mask], keywords=[]) if name == "torch.where":
            return _Selection(call, mask, True)
        case ast.Call(args=[mask]) if name == "torch.nonzero":
            return _Selection(call, mask, is_tuple)
        case ast.Call(func=ast.Attribute(value=mask, attr="nonzero"), args=[]):
            return _Selection(call, mask, is_tuple)
    return None


def _names_of_rows(source: Source, function: Function, names: set[str]) -> set[str]:
    """The names of the index, and of what is made of it row by row."""
    for assign in source.all(ast.Assign, function.body):
        target, value = assign.targets[0], assign.value
        if isinstance(target, ast.Name) and not _is_sum(value) and _reads(value, names) and not _counts(value):
            names = names | {target.id}
    return names


def _reads(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(name, ast.Name) and name.id in names for name in ast.walk(node))


def _is_sum(node: ast.AST) -> bool:
    """Whether all rows are added up: ``rows.sum()``, ``rows.sum(0)``, ``rows.mean(0)``."""
    match node:
        case ast.Call(func=ast.Attribute(attr="sum" | "mean"), args=args, keywords=keywords):
            given = [*map(ast.unparse, args), *map(ast.unparse, keywords)]
            return given in ([], ["0"], ["dim=0"])
    return False


def _summed(node: ast.AST) -> list[ast.expr]:
    """What may be rows that a call adds up: those of ``index_add``, or of ``mse_loss(rows, wanted, reduction="sum")``."""
    match node:
        case ast.Call(func=ast.Attribute(attr="index_add_" | "index_add"), args=args, keywords=keywords):
            given = [*args, *(keyword.value for keyword in keywords)]
            return given[2:] if len(given) == 3 else []
        case ast.Call(args=args, keywords=keywords) if "reduction='sum'" in map(ast.unparse, keywords):
            return args
    return []


def _counts(node: ast.AST) -> bool:
    """Whether it is the number of rows: ``index.shape[0]``, ``index.numel()``, ``index.size(0)``, ``len(index)``."""
    match node:
        case (
            ast.Call(func=ast.Attribute(attr="numel"), args=[], keywords=[])
            | ast.Call(func=ast.Attribute(attr="size"), args=[ast.Constant(value=0)], keywords=[])
            | ast.Call(func=ast.Name(id="len"), args=[_], keywords=[])
            | ast.Subscript(value=ast.Attribute(attr="shape"), slice=ast.Constant(value=0))
        ):
            return True
    return False


def _adds_only(source: Source, test: ast.If, rows: set[str]) -> bool:
    """Whether it is ``if …: continue``, and what it skips only adds rows to something."""
    function, skipped = source.function(test), source.following(test)
    if function is None or test.orelse or not isinstance(test.body[0], ast.Continue):
        return False
    inside = source.all(ast.Name, skipped)
    for statement in skipped:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name), *_]):
                uses = [use for use in source.all(ast.Name, function) if use.id == name]
                if name not in rows or not all(use in inside for use in uses):
                    return False
            case ast.AugAssign(target=ast.Subscript(), op=ast.Add()):
                pass
            case ast.Expr(value=value) if _summed(value):
                pass
            case _:
                return False
    return bool(skipped)


class _FixedIndex:
    """A function with an index of a fixed size.

    Args:
        rows: Names of what has a row for each row of the index.
        shape: What the rows that count are written with.
    """

    def __init__(self, source: Source, selection: _Selection, rows: set[str], shape: str) -> None:
        self._source, self._selection, self._torch, self._rows = source, selection, source.torch, rows
        branches: list[ast.If | ast.IfExp] = source.all((ast.If, ast.IfExp))
        asking = [
            branch for branch in branches if any(_counts(node) and _reads(node, rows) for node in ast.walk(branch.test))
        ]
        self._kept = [
            branch.test for branch in asking if isinstance(branch, ast.If) and _adds_only(source, branch, rows)
        ]
        self._is_asked = len(self._kept) < len(asking)
        self._is_name = isinstance(selection.mask, ast.Name)
        self._mask = source.code(selection.mask) if self._is_name else source.fresh("mask")
        self._is_chosen = source.fresh("is_chosen")
        self._shape = shape
        self.sums = 0

    def text(self, function: Function, assign: ast.Assign) -> str:
        """The file with it, where ``assign`` makes the index; `sums` is then how many sums leave rows out."""
        source, mask, torch = self._source, self._mask, self._torch
        fixed = f"{torch}.nonzero_static({mask}, size={mask}.numel(), fill_value=0)"
        changes = self._changes(function, assign)
        changes[self._selection.call] = f"{fixed}.unbind(-1)" if self._selection.is_tuple else fixed
        chosen = f"{torch}.arange({mask}.numel(), device={mask}.device) < {mask}.count_nonzero()"
        more = [source.after(assign, f"{self._is_chosen} = {chosen}")]
        if not self._is_name:
            more.append(source.before(assign, f"{mask} = {whole(source.code(self._selection.mask))}"))
        return source.changed(changes, more)

    def _changes(self, node: ast.AST, assign: ast.Assign, is_test: bool = False) -> dict[ast.AST, str]:
        """The code of the outermost nodes that change."""
        if node is assign or node in self._kept:
            return {}
        changes: dict[ast.AST, str] = {}
        for child in ast.iter_child_nodes(node):
            changes |= self._changes(child, assign, is_test or (isinstance(node, ast.If) and child is node.test))
        code = self._changed(node, changes, is_test)
        return changes if code is None else {node: code}

    def _changed(self, node: ast.AST, changes: dict[ast.AST, str], is_test: bool) -> str | None:
        """The code of a node with those of what is inside of it; None if nothing else of it changes."""
        source = self._source
        match node:
            case ast.Call(func=ast.Attribute(value=rows, attr=method)) if _is_sum(node) and _reads(rows, self._rows):
                arguments = source.text[source.span(node.func)[1] : source.span(node)[1]]
                summed = f"{self._left_out(rows, changes)}.sum{arguments}"
                return summed if method == "sum" else f"({summed} / {self._count(is_test)})"
            case ast.Call() if added := [value for value in _summed(node) if _reads(value, self._rows)]:
                return source.code(node, changes | {value: self._left_out(value, changes) for value in added})
            case ast.Call() | ast.Subscript() if _counts(node) and _reads(node, self._rows):
                return self._count(is_test)
            case ast.AugAssign(target=ast.Subscript() as target, op=ast.Add()) if _reads(target, self._rows):
                return self._put(target, node.value, changes)
        return None

    def _put(self, target: ast.Subscript, added: ast.expr, changes: dict[ast.AST, str]) -> str | None:
        """``out[index] += rows``: an index that comes twice would count once."""
        index = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
        if any(isinstance(part, (ast.Slice, ast.Starred)) for part in index):
            return None
        where = ", ".join(self._source.code(part, changes) for part in index)
        rows = self._left_out(added, changes)
        return f"{self._source.code(target.value, changes)}.index_put_(({where},), {rows}, accumulate=True)"

    def _count(self, is_test: bool) -> str:
        """Where the text asks first whether there is a row, it divides by one if there is none: both sides of the
        branch will be computed."""
        least = ".clamp(min=1)" if self._is_asked and not is_test else ""
        return f"{self._mask}.count_nonzero(){least}"

    def _left_out(self, rows: ast.expr, changes: dict[ast.AST, str]) -> str:
        self.sums += 1
        return f"{self._torch}.where({self._is_chosen}{self._shape}, {self._source.code(rows, changes)}, 0)"


_EXAMPLES = (
    Example.body("""
        - index = x.nonzero()
        - return index.sum() + x.sum()
        + index = torch.nonzero_static(x, size=x.numel(), fill_value=0)
        + is_chosen = torch.arange(x.numel(), device=x.device) < x.count_nonzero()
        + return torch.where(is_chosen[:, None], index, 0).sum() + x.sum()
    """),
    Example.body("""
        - index = torch.nonzero(x > 0).squeeze(1)
        - return x[index].mean(0)
        + mask = x > 0
        + index = torch.nonzero_static(mask, size=mask.numel(), fill_value=0).squeeze(1)
        + is_chosen = torch.arange(mask.numel(), device=mask.device) < mask.count_nonzero()
        + return (torch.where(is_chosen, x[index], 0).sum(0) / mask.count_nonzero())
    """),
)
RULE = Rule("indices", ("graph-break",), _propose, ("GB0036",), examples=_EXAMPLES)
