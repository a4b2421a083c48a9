"""What a graph computes in eager mode on the CPU, from its printed text: the inputs and the results of a kernel.

The text is parsed; what is called are operators of PyTorch by their names (``torch.ops.aten…``), nothing else.  A node
that cannot be computed here, as one that only a GPU has, gets a value made from its printed shape, and a note says so.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import operator
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

from irscope.values.run.attention import named_arguments, on_cpu
from irscope.vocabulary.dtypes import SHORT

_ANNOTATION = re.compile(r"^(?P<dtype>[a-z]\w*)\[(?P<shape>[^\]]*)\](?:\[(?P<strides>[^\]]*)\])?")
_DTYPES = {short: name for name, short in SHORT.items()}
_CLASS = re.compile(r"^(\s*)class <lambda>\(", re.MULTILINE)
_NAMESPACES = ("aten", "prims", "quantized_decomposed")
_OF_HIGHER_ORDER = ("flex_attention", "flex_attention_backward")
_DANGEROUS = ("from_file", "_from_file", "save", "load")
_FLOATS = ("float16", "bfloat16", "float32")
_OPERATORS: Mapping[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.Div: operator.truediv, ast.Pow: operator.pow, ast.USub: operator.neg,
    ast.Lt: operator.lt, ast.Gt: operator.gt, ast.LtE: operator.le, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}  # fmt: skip
SYMBOL = 8
"""The size that an unknown symbol gets."""


class EagerGraph:
    """The nodes of one printed graph; each is computed once, when it is asked for.

    Args:
        text: As the stage of the graph has it; empty: there is none, and each value is made.
        known: Values by node, from a value run.
        is_wide: In float64: inputs, constants and the dtypes that operators are given.
        noise: By how much of itself each result is disturbed.
        forward: The forward graph, for a backward graph: some of its nodes are inputs there, by the same names.
    """

    def __init__(self, text: str, known: Mapping[str, Any], *, is_wide: bool = False, noise: float = 0.0, forward: EagerGraph | None = None) -> None:  # fmt: skip
        self._forward = forward
        self._torch: Any = sys.modules["torch"]
        self._known, self._is_wide, self._noise = known, is_wide, noise
        self._statements: dict[str, ast.expr] = {}
        self._annotations: dict[str, str] = {}
        self._parts: dict[str, str] = {}
        """Graphs that operators of this one call, by name: ``sdpa_score0`` of flex attention."""
        self._mask: dict[str, tuple[str, int]] = {}
        """Inputs that describe the blocks of a mask → ``all``, ``none`` or ``each``, and the number of blocks."""
        self.inputs: list[str] = []
        self.result = ""
        """The node that it returns; empty if it returns several."""
        self.symbols: dict[str, int] = {}
        self.values: dict[str, Any] = {}
        self.made: dict[str, str] = {}
        """Node → why its value was made and not computed; empty for an input of the graph."""
        if text:
            self._read(text)
        for name, annotation in self._annotations.items():
            self._learn(annotation, known.get(name))

    def _learn(self, annotation: str, value: Any) -> None:
        """Takes the sizes of symbols from a value that is known."""
        if annotation.startswith("Sym(") and isinstance(value, int) and annotation[4:-1].isidentifier():
            self.symbols[annotation[4:-1]] = value
        found = _ANNOTATION.match(annotation)
        if found is not None and isinstance(value, self._torch.Tensor):
            parts = [part.strip() for part in found["shape"].split(",") if part.strip()]
            if len(parts) == value.dim():
                self.symbols.update({part: int(size) for part, size in zip(parts, value.shape, strict=True) if part.isidentifier()})  # fmt: skip

    def _read(self, text: str) -> None:
        tree = ast.parse(_CLASS.sub(r"\1class Graph(", text))
        function = next(each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.name == "forward")
        for argument in function.args.args[1:]:
            self.inputs.append(argument.arg)
            self._annotate(argument.arg, argument.annotation)
        for statement in function.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value:
                self._annotate(statement.target.id, statement.annotation)
                self._statements.setdefault(statement.target.id, statement.value)
            elif isinstance(statement, ast.Return) and isinstance(statement.value, ast.Name):
                self.result = statement.value.id
            elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                if not (isinstance(statement.value, ast.Constant) and statement.value.value is None):
                    self._statements.setdefault(statement.targets[0].id, statement.value)

        self._read_parts(tree)

    def _read_parts(self, tree: ast.Module) -> None:
        whole = next((each for each in tree.body if isinstance(each, ast.ClassDef)), None)
        for part in whole.body if whole is not None else ():
            if isinstance(part, ast.ClassDef):
                self._parts[part.name] = ast.unparse(part)
        for each in self._statements.values():
            if isinstance(each, ast.Call) and ast.unparse(each.func).endswith(".higher_order.flex_attention"):
                self._learn_mask(each.args[4] if len(each.args) > 4 else None)

    def _learn_mask(self, mask: ast.expr | None) -> None:
        """Which inputs tell the blocks of a mask: if they are made, all blocks are looked at and none is known to be full."""
        names = (
            [each.id if isinstance(each, ast.Name) else "" for each in mask.elts] if isinstance(mask, ast.Tuple) else []
        )
        for number, how in ((2, "all"), (4, "none"), (6, "all"), (8, "none")):
            if len(names) > number + 1 and names[number + 1]:
                found = _ANNOTATION.match(self._annotations.get(names[number + 1], ""))
                count = self._sizes(found["shape"])[-1] if found is not None and found["shape"] else 0
                self._mask[names[number]], self._mask[names[number + 1]] = (how, count), ("each", count)

    def _annotate(self, name: str, annotation: ast.expr | None) -> None:
        if isinstance(annotation, ast.Constant):
            self._annotations[name] = str(annotation.value)

    @property
    def names(self) -> list[str]:
        """All nodes of the graph, in their order."""
        return [*self.inputs, *self._statements]

    def value(self, name: str) -> Any:
        """The value of a node.  Raises LookupError for a name that the graph does not have."""
        # Node by node from the inputs: a graph is deeper than Python's stack.
        waiting = [name]
        while waiting:
            node = waiting[-1]
            if node in self.values:
                waiting.pop()
                continue
            if node in self._known and self._fits(node):
                self.values[node] = self._widened(self._known[node])
                continue
            expression = self._statements.get(node)
            if expression is None:
                if node not in self._annotations:
                    raise LookupError(node)
                self.values[node] = self._saved(node) if self._is_saved(node) else self._make(node, "")
                continue
            used = [each.id for each in ast.walk(expression) if isinstance(each, ast.Name)]
            missing = [each for each in used if each not in self.values and (each in self._statements or each in self._annotations)]  # fmt: skip
            if missing:
                waiting += missing
                continue
            try:
                found = self._disturbed(self._evaluate(expression))
            except Exception as error:  # noqa: BLE001  an operator that the CPU does not have, or does not know here
                found = self._make(node, f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:160]}")
            self.values[node] = found
        return self.values[name]

    def _fits(self, node: str) -> bool:
        known, found = self._known[node], _ANNOTATION.match(self._annotations.get(node, ""))
        if not isinstance(known, self._torch.Tensor):
            return True
        if found is None:
            return False
        return (
            list(known.shape) == self._sizes(found["shape"])
            and str(known.dtype) == f"torch.{_DTYPES.get(found['dtype'])}"
        )

    def _is_saved(self, node: str) -> bool:
        """Whether the forward graph computes an input, in the shape that it has here."""
        if self._forward is None or node not in self._forward._statements:
            return False
        if (
            self._annotations.get(node, "").partition("cuda")[0]
            != self._forward._annotations.get(node, "").partition("cuda")[0]
        ):
            return False
        try:
            value = self._forward.value(node)
            return (value is None or isinstance(value, self._torch.Tensor)) and node not in self._forward.made
        except LookupError:
            return False

    def _saved(self, node: str) -> Any:
        assert self._forward is not None
        return self._widened(self._forward.value(node))

    # --- values that are made ---------------------------------------------------------------------------------------

    def _make(self, node: str, why: str) -> Any:
        self.made[node] = why
        annotation = self._annotations.get(node, "")
        if annotation.startswith("Sym("):
            return self.symbol(annotation[4:-1])
        found = _ANNOTATION.match(annotation)
        if found is None:
            if not self._is_used_by_items(node):
                raise LookupError(f"{node}: {why}")
            return _Parts(self, node)
        strides = self._sizes(found["strides"]) if found["strides"] is not None else None
        return self._widened(self.made_tensor(node, self._sizes(found["shape"]), strides, _DTYPES[found["dtype"]]))

    def _is_used_by_items(self, node: str) -> bool:
        return any(
            isinstance(each, ast.Subscript) and isinstance(each.value, ast.Name) and each.value.id == node
            for each in self._statements.values()
        )

    def made_tensor(self, name: str, shape: list[int], strides: list[int] | None, dtype: str) -> Any:
        """A tensor that depends on its name alone: normal numbers, in a vector positive ones; integers are 0 and 1."""
        torch = self._torch
        if name in self._mask:
            how, count = self._mask[name]
            own_blocks = torch.arange(count) if how == "each" else torch.tensor(count if how == "all" else 0)
            return own_blocks.to(getattr(torch, dtype)).expand(shape).contiguous()
        generator = torch.Generator().manual_seed(
            int.from_bytes(hashlib.blake2b(name.encode(), digest_size=4).digest(), "big")
        )
        own = getattr(torch, dtype)
        if not (own.is_floating_point or own.is_complex):
            made = torch.randint(0, 2, shape, generator=generator).to(own)
        elif len(shape) < 2:
            made = (torch.rand(shape, generator=generator) + 0.5).to(own)
        else:
            made = torch.randn(shape, generator=generator).to(own)
        if strides is None or made.stride() == tuple(strides):
            return made
        extent = (
            1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)) if made.numel() else 0
        )
        return torch.empty(extent, dtype=own).as_strided(shape, strides).copy_(made)

    def symbol(self, text: str) -> int:
        """The size that an expression over symbols stands for.  A symbol that is not known is 8."""
        tree = ast.parse(text, mode="eval").body
        for each in ast.walk(tree):
            if isinstance(each, ast.Name) and each.id not in self.symbols:
                is_input = self._annotations.get(each.id, "").startswith("Sym(")
                self.symbols[each.id] = int(self.value(each.id)) if is_input else SYMBOL
        return int(self._evaluate(tree))

    def _sizes(self, text: str) -> list[int]:
        return [
            int(part) if part.isdecimal() else self.symbol(part)
            for part in (p.strip() for p in text.split(","))
            if part
        ]

    # --- evaluating -------------------------------------------------------------------------------------------------

    def _evaluate(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self._named(node.id)
        if isinstance(node, ast.List | ast.Tuple):
            found = [self._evaluate(each) for each in node.elts]
            return found if isinstance(node, ast.List) else tuple(found)
        if isinstance(node, ast.Dict):
            return {self._evaluate(key): self._evaluate(value) for key, value in zip(node.keys, node.values, strict=True) if key is not None}  # fmt: skip
        if isinstance(node, ast.UnaryOp):
            return _OPERATORS[type(node.op)](self._evaluate(node.operand))
        if isinstance(node, ast.BinOp):
            return _OPERATORS[type(node.op)](self._evaluate(node.left), self._evaluate(node.right))
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return _OPERATORS[type(node.ops[0])](self._evaluate(node.left), self._evaluate(node.comparators[0]))
        if isinstance(node, ast.Subscript):
            return self._evaluate(node.value)[self._evaluate(node.slice)]
        if isinstance(node, ast.Attribute):
            return self._attribute(ast.unparse(node))
        if isinstance(node, ast.Call):
            return self._call(node)
        raise LookupError(f"{type(node).__name__} in a graph")

    def _named(self, name: str) -> Any:
        if name in self.values:
            return self.values[name]
        if name in self.symbols:
            return self.symbols[name]
        if name in ("inf", "nan"):
            return float(name)
        raise LookupError(name)

    def _called_part(self, name: str, *arguments: Any) -> Any:
        """What a graph that an operator calls gives for arguments."""
        part = EagerGraph(self._parts[name], {}, is_wide=self._is_wide)
        part.values.update(zip(part.inputs, arguments, strict=True))
        return part.value(part.result)

    def _attribute(self, text: str) -> Any:
        if text.startswith("self.") and text[5:] in self._parts:
            return functools.partial(self._called_part, text[5:])
        name = text.removeprefix("torch.")
        if text.startswith("torch.") and name.isidentifier():
            found = getattr(self._torch, name, None)
            if isinstance(found, self._torch.dtype):
                return self._torch.float64 if self._is_wide and name in _FLOATS else found
            if isinstance(found, self._torch.layout | self._torch.memory_format):
                return found
        raise LookupError(text)

    def _call(self, node: ast.Call) -> Any:
        called = ast.unparse(node.func)
        if called in ("device", "torch.device"):
            return self._torch.device("cpu")
        arguments = [self._evaluate(each) for each in node.args]
        named = {each.arg: self._evaluate(each.value) for each in node.keywords if each.arg}
        if called in ("operator.getitem", "getitem"):
            return arguments[0][arguments[1]]
        parts = called.split(".")
        if parts[:3] == ["torch", "ops", "higher_order"] and parts[3] in _OF_HIGHER_ORDER:
            return getattr(self._torch.ops.higher_order, parts[3])(*arguments, **named)
        if (
            parts[:2] != ["torch", "ops"]
            or len(parts) not in (4, 5)
            or parts[2] not in _NAMESPACES
            or parts[3] in _DANGEROUS
        ):
            raise LookupError(f"{called} is not computed in eager mode")
        found = getattr(getattr(self._torch.ops, parts[2]), parts[3])
        called_operator = getattr(found, parts[4] if len(parts) > 4 else "default")
        if (attention := named_arguments(called_operator, arguments, named)) is not None:
            return on_cpu(called_operator, attention)
        return called_operator(*arguments, **named)

    def _widened(self, value: Any) -> Any:
        if self._is_wide and isinstance(value, self._torch.Tensor) and value.is_floating_point():
            return value.to(self._torch.float64)
        return value

    def _disturbed(self, value: Any) -> Any:
        if not self._noise:
            return value
        if isinstance(value, tuple | list):
            return type(value)(map(self._disturbed, value)) if type(value) in (tuple, list) else value
        if not isinstance(value, self._torch.Tensor) or value.dtype is not self._torch.float64:
            return value
        generator = self._torch.Generator().manual_seed(0)
        return value * (
            1 + self._noise * (self._torch.rand(value.shape, generator=generator, dtype=value.dtype) * 2 - 1)
        )


class _Parts:
    """Stands for a tuple whose parts have printed shapes: each part is made when it is taken."""

    def __init__(self, graph: EagerGraph, node: str) -> None:
        self._graph, self._node = graph, node

    def __getitem__(self, index: int) -> Any:
        raise LookupError(f"{self._node} was not computed")
