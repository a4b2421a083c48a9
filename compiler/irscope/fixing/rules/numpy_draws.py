"""A helper that draws with NumPy and fills an array: one operation of the graph, which runs it as it is.

Dynamo traces NumPy's functions as those of torch, so compiled code draws other numbers than plain code does, and counts
that are drawn break the graph.  As an operator the helper draws the same numbers, and moves NumPy's generator on.
"""

from __future__ import annotations

import ast
import builtins
import os
import re
from collections.abc import Iterator

from irscope.fixing.model import OF_VALUES, Example, Proposal, Rule
from irscope.fixing.source import Source, bound_names
from irscope.fixing.splitting import given_parameters, renamed, with_body
from irscope.protocol import Finding

_TITLE = "Draw with NumPy in one operation of the graph"
_CAVEAT = (
    "The operation runs on the CPU, is not compiled, and has no gradients. `torch._library.effects` is not a "
    "public name of PyTorch; without it, compilers make one call of two equal ones."
)
_SPACE = "numpy_draws"
"""The namespace of the operators."""
_MAKERS = ("numpy.zeros", "numpy.ones", "numpy.empty")
_DTYPES = {
    "bool_": "bool",
    "float": "float64",
    **{name: name for name in ("bool", "int32", "int64", "float32", "float64")},
}
_RESHAPES = frozenset({"resize", "shape", "dtype", "setflags", "data", "strides"})
"""What changes the shape or type of an array in place."""
_TYPES = {"int": "SymInt", "float": "float", "bool": "bool", "str": "str"}
_OPTIONAL = re.compile(r"(?:typing\.)?Optional\[(.+)\]|(.+) \| None|None \| (.+)")
_SEQUENCE = re.compile(r"(?:\w+\.)*(?:[tT]uple|[lL]ist|Sequence)\[(int|float)(?:, (?:\1|\.\.\.))*\]")
_TUPLE = re.compile(r"(?:typing\.)?[tT]uple\[")
_READ = frozenset({
    "all", "any", "bool", "cpu", "detach", "dim", "device", "dtype", "float", "int", "item", "long", "max", "mean", "min",
    "numel", "shape", "size", "sum", "tolist",
})  # fmt: skip
"""What may be asked of a tensor that is passed: an operator must not change it, and its results must not share its memory."""
_OPEN = (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Await, ast.Import, ast.ImportFrom, ast.ClassDef)
"""What reads or changes more than arguments."""


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    numpy, function = source.module_name("numpy"), source.top_statement(source.at(finding.range))
    if not isinstance(function, ast.FunctionDef) or numpy is None or function.decorator_list:
        return
    helper = _Helper(source, function, source.torch, numpy)
    made = helper.result()
    if made is not None and helper.can_be_operator():
        stem = re.sub(r"\W", "_", os.path.splitext(os.path.basename(finding.file))[0])
        yield Proposal(_TITLE, _CAVEAT, _with_operator(source, helper, stem, *made))


class _Helper:
    """A function, and what an operator must know of it."""

    def __init__(self, source: Source, function: ast.FunctionDef, torch: str, numpy: str) -> None:
        self.source, self.function, self.torch, self._numpy = source, function, torch, numpy
        self._nodes = list(ast.walk(function))
        self._names = [node for node in self._nodes if isinstance(node, ast.Name)]
        self._stored = [name.id for name in self._names if not isinstance(name.ctx, ast.Load)]
        params = [*function.args.posonlyargs, *function.args.args]
        self.hints = {param.arg: ast.unparse(param.annotation) if param.annotation else "" for param in params}
        self.types = {name: _type_of(hint, torch) for name, hint in self.hints.items()}
        kept = self.types.keys() - set(self._stored)
        self.unpacked = {
            name: ast.unparse(node)
            for node in function.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id in kept
            for name in bound_names(node)
            if self._stored.count(name) == 1
        }
        """What the function takes out of its arguments before all else, and never changes: ``rows, columns = shape``."""

    def can_be_operator(self) -> bool:
        """Whether it draws, its result depends on its arguments, torch, NumPy and builtins alone, and it leaves the
        tensors and lists that it gets as they are, as far as the code shows."""
        words = map(self.source.full_name, self._nodes)
        has_schema = bool(self.types) and all(self.types.values())
        given = given_parameters(self.source, self.function)
        is_open = given is None or any(isinstance(node, _OPEN) for node in self._nodes)
        if not has_schema or is_open or not any(word.startswith("numpy.random.") for word in words):
            return False
        hints = [getattr(node, field, None) for node in self._nodes for field in ("annotation", "returns")]
        in_hints = {name for hint in hints if hint is not None for name in ast.walk(hint)}
        allowed = bound_names(self.function) - {self.function.name} | {self.torch, self._numpy, *dir(builtins)}
        is_closed = all(name.id in allowed or name in in_hints for name in self._names)
        return is_closed and all(map(self._is_read, self._names))

    def _is_read(self, name: ast.Name) -> bool:
        kind = self.types.get(name.id, "")
        is_tensor = "Tensor" in kind
        if not is_tensor and "[]" not in kind:
            return True
        if isinstance(name.ctx, ast.Store):
            return False
        match self.source.parent(name):
            case ast.Attribute(attr=attr):
                return is_tensor and attr in _READ
            case ast.Subscript(ctx=context):
                return isinstance(context, ast.Load) and not is_tensor
            case ast.Compare() | ast.Call(func=ast.Name(id="len")):
                return True
            case ast.Call(func=called) if self.source.full_name(called).startswith("numpy.random."):
                return False  # it may shuffle it
        return not is_tensor

    def result(self) -> tuple[str, str] | None:
        """The shape of what is returned, as code of the arguments, and its type in torch; None if that is not certain.

        It is one array, made once with a shape, and filled in place.
        """
        returns = [node for node in self._nodes if isinstance(node, ast.Return)]
        values = [node.value for node in returns if self.source.function(node) is self.function]
        returned = {ast.unparse(value) if value is not None else "" for value in values}
        attributes = [node for node in self._nodes if isinstance(node, ast.Attribute) and node.attr in _RESHAPES]
        for statement in self.function.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call) if returned == {name}:
                    is_reshaped = any(ast.unparse(attribute.value) == name for attribute in attributes)
                    return self._made_by(call) if self._stored.count(name) == 1 and not is_reshaped else None
        return None

    def _made_by(self, call: ast.Call) -> tuple[str, str] | None:
        given = [*call.args[1:], *(keyword.value for keyword in call.keywords if keyword.arg == "dtype")]
        is_known = len(call.args) + len(call.keywords) == 1 + len(given) and len(given) < 2
        if self.source.full_name(call.func) not in _MAKERS or not call.args or not is_known:
            return None
        dtype = _DTYPES.get(self.source.full_name(given[0]).removeprefix("numpy.")) if given else "float64"
        read = {node.id for node in ast.walk(call.args[0]) if isinstance(node, ast.Name)}
        is_of_arguments = read <= self.types.keys() | self.unpacked.keys()
        return (ast.unparse(call.args[0]), f"{self.torch}.{dtype}") if dtype and is_of_arguments else None


def _type_of(hint: str, torch: str) -> str:
    """What the schema of an operator calls an argument's type; empty if it has none."""
    optional = _OPTIONAL.fullmatch(hint)
    hint = next(filter(None, optional.groups())) if optional else hint
    sequence = _SEQUENCE.fullmatch(hint)
    kind = f"{_TYPES[sequence[1]]}[]" if sequence else _TYPES.get(hint, "")
    kind = "Tensor" if re.fullmatch(rf"{torch}\.[\w.]*Tensor", hint) else kind
    return f"{kind}?" if kind and optional else kind


def _with_operator(source: Source, helper: _Helper, stem: str, shape: str, dtype: str) -> str:
    """The helper under another name, the operator that runs it, what the operator gives while tracing, and a function of
    the helper's name that calls the operator."""
    function, torch = helper.function, helper.torch
    plain = function.name.strip("_")
    inner, op, name = source.fresh(f"{plain}_with_numpy"), source.fresh(f"{plain}_in_graph"), f"{stem}_{plain}"
    names = ", ".join(helper.types)
    schema = ", ".join(f"{kind} {param}" for param, kind in helper.types.items())
    # The operator gets tuples as lists.
    passed = ", ".join(f"tuple({param})" if _TUPLE.match(hint) else param for param, hint in helper.hints.items())
    unpacked = "".join(f"    {line}\n" for line in dict.fromkeys(helper.unpacked.values()))
    operator = (
        f"@{torch}.library.custom_op(\n"
        f'    "{_SPACE}::{name}",\n'
        "    mutates_args=(),\n"
        f'    schema="({schema}) -> Tensor",\n'
        f"    tags=({torch}.Tag.nondeterministic_seeded,),\n"
        f")\ndef {op}({names}):\n    return {torch}.from_numpy({inner}({passed}))\n\n\n"
        "# It moves NumPy's generator on: equal calls must not become one.\n"
        f"{op}.register_effect({torch}._library.effects.EffectType.ORDERED)\n\n\n"
        f"@{op}.register_fake\ndef _({names}):\n{unpacked}    return {torch}.empty({shape}, dtype={dtype})"
    )
    docstring = [source.code(function.body[0])] if ast.get_docstring(function) is not None else []
    body = "\n".join([*docstring, f"return {torch}.ops.{_SPACE}.{name}({names}).numpy()"])
    functions = [renamed(source, function, inner), operator, with_body(source, function, body)]
    return source.changed({function: "\n\n\n".join(functions)})


_KEPT = """
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
_OPERATOR = """\
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


@torch.compile"""
_DRAWN = _KEPT.replace("def kept(", "def kept_with_numpy(").replace("@torch.compile", _OPERATOR)
_EXAMPLES = (
    Example(_KEPT, _DRAWN, is_script=True),
    Example(
        _KEPT.replace("dtype=bool", "np.float32"),
        _DRAWN.replace("dtype=bool", "np.float32").replace("torch.bool", "torch.float32"),
        is_script=True,
    ),
)
RULE = Rule("NumPy draws", ("graph-break",), _propose, (*OF_VALUES, "GB0206", "GB0007"), examples=_EXAMPLES)
