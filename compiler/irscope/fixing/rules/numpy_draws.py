"""A helper that draws with NumPy and fills an array: one operation of the graph, which runs it as it is.

Dynamo traces NumPy's functions as those of torch, so compiled code draws other numbers than plain code does, and counts
that are drawn break the graph.  As an operator the helper draws the same numbers, and moves NumPy's generator on.
"""

from __future__ import annotations

import ast
import builtins
import os
import re
from collections.abc import Iterator, Sequence

from irscope.fixing.changes import ChangeKind, SyntaxChange
from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.source import Source, bound_names
from irscope.protocol import Finding, Position, Range

_TITLE = "Draw with NumPy in one operation of the graph"
_CAVEAT = (
    "The operation runs on the CPU, is not compiled, and has no gradients. `torch._library.effects` is not a "
    "public name of PyTorch; without it, compilers make one call of two equal ones."
)
_SPACE = "numpy_draws"
"""Of the names of operators."""
_MAKERS = ("zeros", "ones", "empty")
_DTYPES = {
    "bool": "bool", "bool_": "bool", "int32": "int32", "int64": "int64", "float32": "float32", "float64": "float64",
    "float": "float64",
}  # fmt: skip
_RESHAPES = frozenset({"resize", "shape", "dtype", "setflags", "data", "strides"})
"""What changes the shape or type of an array in place."""
_TYPES = {"int": "SymInt", "float": "float", "bool": "bool", "str": "str"}
_TUPLE = re.compile(r"(?:typing\.)?[tT]uple\[")
_READ = frozenset({
    "all", "any", "bool", "cpu", "detach", "dim", "device", "dtype", "float", "int", "item", "long", "max", "mean", "min",
    "numel", "shape", "size", "sum", "tolist",
})  # fmt: skip
"""What may be asked of a tensor that is passed: an operator must not change it, and its results must not share its memory."""
_SEQUENCES = frozenset({"tuple", "list", "Tuple", "List", "Sequence"})
_OPEN = (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Await, ast.Import, ast.ImportFrom, ast.ClassDef)
"""What reads or changes more than arguments."""


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    node = source.at(finding.range)
    torch, numpy = source.module_name("torch"), source.module_name("numpy")
    function = source.top_statement(node) if node is not None else None
    if not isinstance(function, ast.FunctionDef) or torch is None or numpy is None or function.decorator_list:
        return
    helper = _Helper(source, function, torch, numpy)
    if helper.fits:
        stem = re.sub(r"\W", "_", os.path.splitext(os.path.basename(finding.file))[0])
        yield Proposal(_TITLE, _CAVEAT, _with_operator(source, helper, torch, stem))


class _Helper:
    """A function, and what an operator must know of it."""

    def __init__(self, source: Source, function: ast.FunctionDef, torch: str, numpy: str) -> None:
        self.function, self._source, self._torch, self._numpy = function, source, torch, numpy
        given = function.args
        self.params = [*given.posonlyargs, *given.args]
        self.types = [_type_of(param.annotation, torch) for param in self.params]
        self._nodes = list(ast.walk(function))
        self._names = [node for node in self._nodes if isinstance(node, ast.Name)]
        self.result = self._result()
        self.fits = (
            not (given.vararg or given.kwarg or given.kwonlyargs) and bool(self.params) and all(self.types)
            and self.result is not None and self._draws and self._is_closed and self._only_reads
        )  # fmt: skip

    @property
    def passed(self) -> str:
        """What the operator passes on: it gets tuples as lists."""
        hints = {param.arg: ast.unparse(param.annotation) if param.annotation else "" for param in self.params}
        return ", ".join(f"tuple({name})" if _TUPLE.match(hint) else name for name, hint in hints.items())

    def _word(self, node: ast.AST) -> str:
        """The words after NumPy's name: ``random.rand``."""
        text = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
        return text.removeprefix(f"{self._numpy}.") if text.startswith(f"{self._numpy}.") else ""

    @property
    def _draws(self) -> bool:
        return any(self._word(node).startswith("random.") for node in self._nodes)

    @property
    def _is_closed(self) -> bool:
        """Whether its result depends on its arguments, torch, NumPy and builtins alone."""
        bound = bound_names(self.function) - {self.function.name}
        hints = [getattr(node, field, None) for node in self._nodes for field in ("annotation", "returns")]
        in_hints = {name for hint in hints if hint is not None for name in ast.walk(hint)}
        allowed = bound | {self._torch, self._numpy, *dir(builtins)}
        return all(name.id in allowed or name in in_hints for name in self._names) and not any(
            isinstance(node, _OPEN) for node in self._nodes
        )

    @property
    def _only_reads(self) -> bool:
        """Whether it leaves the tensors and lists that it gets as they are, as far as the code shows."""
        kinds = dict(zip((param.arg for param in self.params), self.types, strict=True))
        owned = [name for name in self._names if "Tensor" in kinds.get(name.id, "") or "[]" in kinds.get(name.id, "")]
        return all(self._is_read(name, "Tensor" in kinds[name.id]) for name in owned)

    def _is_read(self, name: ast.Name, is_tensor: bool) -> bool:
        parent = self._source.parent(name)
        match parent:
            case _ if isinstance(name.ctx, ast.Store):
                return False
            case ast.Attribute(attr=attr):
                return is_tensor and attr in _READ
            case ast.Subscript(ctx=context):
                return isinstance(context, ast.Load) and not is_tensor
            case ast.Compare():
                return True
            case ast.Call(func=called) if self._word(called).startswith("random."):
                return False  # it may shuffle it
        return not is_tensor or (parent is not None and ast.unparse(parent) == f"len({name.id})")

    def _result(self) -> tuple[str, str] | None:
        """The shape of what is returned, as code of the arguments, and its type in torch; None if that is not certain.

        It is one array, made once with a shape, and filled in place.
        """
        name = self._returned
        stores = [node for node in self._names if node.id == name and not isinstance(node.ctx, ast.Load)]
        assigns = [node for node in self.function.body if isinstance(node, ast.Assign) and node.targets[0] in stores]
        is_reshaped = any(
            isinstance(node, ast.Attribute) and ast.unparse(node.value) == name and node.attr in _RESHAPES
            for node in self._nodes
        )
        if len(stores) != 1 or len(assigns) != 1 or is_reshaped or not isinstance(assigns[0].value, ast.Call):
            return None
        return self._made_by(assigns[0].value)

    @property
    def _returned(self) -> str:
        """The name that each of its own returns gives; empty if they give something else."""
        returns = [node for node in self._nodes if isinstance(node, ast.Return)]
        values = [node.value for node in returns if self._source.function(node) is self.function]
        names = {value.id if isinstance(value, ast.Name) else "" for value in values}
        return names.pop() if len(names) == 1 else ""

    def _made_by(self, call: ast.Call) -> tuple[str, str] | None:
        if self._word(call.func) not in _MAKERS or not call.args or len(call.args) > 2:
            return None
        keywords = {keyword.arg: keyword.value for keyword in call.keywords}
        dtype = keywords.pop("dtype", None) or (call.args[1] if len(call.args) == 2 else None)
        word = "float64" if dtype is None else _DTYPES.get(self._word(dtype) or ast.unparse(dtype), "")
        read = {node.id for node in ast.walk(call.args[0]) if isinstance(node, ast.Name)}
        if keywords or not word or not read <= {param.arg for param in self.params} | self.unpacked.keys():
            return None
        return ast.unparse(call.args[0]), f"{self._torch}.{word}"

    @property
    def unpacked(self) -> dict[str, str]:
        """What the function takes out of its arguments before all else, and never changes: ``rows, columns = shape``."""
        assigns: dict[str, str] = {}
        params = {param.arg for param in self.params}
        stored = [name.id for name in self._names if isinstance(name.ctx, ast.Store)]
        for node in self.function.body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id in params:
                names = [name.id for name in ast.walk(node.targets[0]) if isinstance(name, ast.Name)]
                if all(stored.count(name) == 1 for name in names) and node.value.id not in stored:
                    assigns |= dict.fromkeys(names, ast.unparse(node))
        return assigns


def _type_of(annotation: ast.expr | None, torch: str) -> str:
    """What the schema of an operator calls an argument's type; empty if it has none."""
    if annotation is None:
        return ""
    text = ast.unparse(annotation)
    if text in _TYPES:
        return _TYPES[text]
    if text.startswith(f"{torch}.") and text.endswith("Tensor"):
        return "Tensor"
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        sides = (annotation.left, annotation.right)
        return _optional([side for side in sides if ast.unparse(side) != "None"], torch)
    if not isinstance(annotation, ast.Subscript):
        return ""
    word = ast.unparse(annotation.value).rpartition(".")[2]
    inside = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
    if word == "Optional":
        return _optional(inside, torch)
    kinds = {ast.unparse(kind) for kind in inside} - {"..."}
    return f"{_TYPES[kinds.pop()]}[]" if word in _SEQUENCES and kinds in ({"int"}, {"float"}) else ""


def _optional(inside: Sequence[ast.expr], torch: str) -> str:
    inner = _type_of(inside[0], torch) if len(inside) == 1 else ""
    return f"{inner}?" if inner and not inner.endswith("?") else ""


def _with_operator(source: Source, helper: _Helper, torch: str, stem: str) -> str:
    """The helper under another name, the operator that runs it, what the operator gives while tracing, and a function of
    the helper's name that calls the operator."""
    assert helper.result is not None
    function, (shape, dtype) = helper.function, helper.result
    plain = function.name.strip("_")
    inner, op, name = source.fresh(f"{plain}_with_numpy"), source.fresh(f"{plain}_in_graph"), f"{stem}_{plain}"
    names = ", ".join(param.arg for param in helper.params)
    schema = ", ".join(f"{kind} {param.arg}" for param, kind in zip(helper.params, helper.types, strict=True))
    unpacked = "".join(f"    {line}\n" for line in dict.fromkeys(helper.unpacked.values()))
    (start, _), (first, first_end) = source.span(function), source.span(function.body[0])
    colons = [token for token in source.tokens if token.string == ":" and source.offset(Position(*token.end)) <= first]
    header = source.text[start : source.offset(Position(*colons[-1].end))]
    if ast.get_docstring(function) is not None:
        header += f"\n    {source.text[first:first_end]}"
    operator = (
        f"\n\n@{torch}.library.custom_op(\n"
        f'    "{_SPACE}::{name}",\n'
        "    mutates_args=(),\n"
        f'    schema="({schema}) -> Tensor",\n'
        f"    tags=({torch}.Tag.nondeterministic_seeded,),\n"
        f")\ndef {op}({names}):\n    return {torch}.from_numpy({inner}({helper.passed}))\n\n\n"
        "# It moves NumPy's generator on: equal calls must not become one.\n"
        f"{op}.register_effect({torch}._library.effects.EffectType.ORDERED)\n\n\n"
        f"@{op}.register_fake\ndef _({names}):\n{unpacked}    return {torch}.empty({shape}, dtype={dtype})\n\n\n"
        f"{header}\n    return {torch}.ops.{_SPACE}.{name}({names}).numpy()"
    )
    before_name = source.text.index(function.name, start + len("def "))
    name_range = Range(source.position(before_name), source.position(before_name + len(function.name)))
    renaming = SyntaxChange(ChangeKind.EXPRESSION, name_range, inner)
    return source.changed({}, [renaming, source.after(function, operator)])


_BEFORE = """
import numpy as np
import torch


def kept(rows: int, share: float) -> np.ndarray:
    mask = np.zeros(rows, dtype=bool)
    mask[: int(np.random.rand() * share)] = True
    return mask


@torch.compile(backend="eager")
def f(x):
    return torch.where(torch.tensor(kept(x.shape[0], 3.0)), x, 0.0)


f(torch.ones(4))
"""
_AFTER = """
import numpy as np
import torch


def kept_with_numpy(rows: int, share: float) -> np.ndarray:
    mask = np.zeros(rows, dtype=bool)
    mask[: int(np.random.rand() * share)] = True
    return mask


@torch.library.custom_op(
    "numpy_draws::script_kept",
    mutates_args=(),
    schema="(SymInt rows, float share) -> Tensor",
    tags=(torch.Tag.nondeterministic_seeded,),
)
def kept_in_graph(rows, share):
    return torch.from_numpy(kept_with_numpy(rows, share))


# It moves NumPy's generator on: equal calls must not become one.
kept_in_graph.register_effect(torch._library.effects.EffectType.ORDERED)


@kept_in_graph.register_fake
def _(rows, share):
    return torch.empty(rows, dtype=torch.bool)


def kept(rows: int, share: float) -> np.ndarray:
    return torch.ops.numpy_draws.script_kept(rows, share).numpy()


@torch.compile(backend="eager")
def f(x):
    return torch.where(torch.tensor(kept(x.shape[0], 3.0)), x, 0.0)


f(torch.ones(4))
"""
RULE = Rule(
    "NumPy draws",
    ("graph-break",),
    _propose,
    ("GB0033", "GB0124", "GB0170", "GB0206", "GB0007"),
    examples=(
        Example(_BEFORE, _AFTER, is_script=True),
        Example(
            _BEFORE.replace("dtype=bool", "np.float32"),
            _AFTER.replace("dtype=bool", "np.float32").replace("torch.bool", "torch.float32"),
            is_script=True,
        ),
    ),
)
