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

import libcst as cst
from irscope.protocol import Finding

from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Change, Source, statements

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


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    node = source.at(finding.range)
    torch, numpy = source.module_name("torch"), source.module_name("numpy")
    function = source.function(node) if node is not None else None
    while function is not None and source.parent(function) is not source.module:
        function = source.function(source.parent(function) or source.module)
    if function is None or torch is None or numpy is None or function.decorators:
        return
    tree = ast.parse(source.code(function.with_changes(leading_lines=[]))).body[0]
    assert isinstance(tree, (ast.FunctionDef, ast.AsyncFunctionDef))
    helper = _Helper(tree, torch, numpy)
    if not helper.fits:
        return
    stem = re.sub(r"\W", "_", os.path.splitext(os.path.basename(finding.file))[0])
    text = source.changed({function: _operator(source, function, helper, torch, stem)})
    yield Proposal(_TITLE, _CAVEAT, text)


class _Helper:
    """A function, read with Python's own tree: its text stays as it is."""

    def __init__(self, node: ast.FunctionDef | ast.AsyncFunctionDef, torch: str, numpy: str) -> None:
        self.node, self._torch, self._numpy = node, torch, numpy
        given = node.args
        self.params = [*given.posonlyargs, *given.args]
        odd = given.vararg or given.kwarg or given.kwonlyargs or isinstance(node, ast.AsyncFunctionDef)
        self.types = [_type_of(one.annotation, torch) for one in self.params]
        words = [ast.unparse(one.annotation) if one.annotation is not None else "" for one in self.params]
        pairs = zip(self.params, words, strict=True)
        self.passed = ", ".join(f"tuple({one.arg})" if _TUPLE.match(word) else one.arg for one, word in pairs)
        """What the operator passes on: it gets tuples as lists."""
        self.result = self._result()
        self.fits = (
            not odd and bool(self.params) and all(self.types) and bool(self.result)
            and self._draws and self._is_closed and self._only_reads
        )  # fmt: skip

    def _name(self, node: ast.AST) -> str:
        """The words after NumPy's name: ``random.rand``."""
        text = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
        return text.removeprefix(f"{self._numpy}.") if text.startswith(f"{self._numpy}.") else ""

    @property
    def _draws(self) -> bool:
        return any(self._name(one).startswith("random.") for one in ast.walk(self.node))

    @property
    def _is_closed(self) -> bool:
        """Whether its result depends on its arguments, torch, NumPy and builtins alone."""
        names = [one for one in ast.walk(self.node) if isinstance(one, ast.Name)]
        stored = {one.id for one in names if isinstance(one.ctx, ast.Store)} | {
            one.arg for one in ast.walk(self.node) if isinstance(one, ast.arg)
        }
        stored |= {one.name for one in ast.walk(self.node) if isinstance(one, ast.FunctionDef) and one is not self.node}
        known = stored | {self._torch, self._numpy, *dir(builtins)}
        hints = {id(one) for hint in self._annotations() for one in ast.walk(hint)}
        odd = (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Await, ast.Import, ast.ImportFrom, ast.ClassDef)
        return all(one.id in known or id(one) in hints for one in names) and not any(
            isinstance(one, odd) for one in ast.walk(self.node)
        )

    @property
    def _only_reads(self) -> bool:
        """Whether it leaves the tensors and lists that it gets as they are, as far as the code shows."""
        kinds = dict(zip((one.arg for one in self.params), self.types, strict=True))
        owned = {name for name, kind in kinds.items() if "Tensor" in kind or "[]" in kind}
        above = {id(below): one for one in ast.walk(self.node) for below in ast.iter_child_nodes(one)}
        for one in ast.walk(self.node):
            if not isinstance(one, ast.Name) or one.id not in owned:
                continue
            parent = above[id(one)]
            is_tensor = "Tensor" in kinds[one.id]
            if isinstance(one.ctx, ast.Store) or (
                isinstance(parent, ast.Subscript) and not isinstance(parent.ctx, ast.Load)
            ):
                return False
            if isinstance(parent, ast.Attribute) and not (is_tensor and parent.attr in _READ):
                return False
            plain = isinstance(parent, (ast.Attribute, ast.Compare)) or ast.unparse(parent) == f"len({one.id})"
            if is_tensor and not plain:
                return False
            if isinstance(parent, ast.Call) and self._name(parent.func).startswith("random."):
                return False  # it may shuffle it
        return True

    def _annotations(self) -> Iterator[ast.expr]:
        for one in ast.walk(self.node):
            hints = (getattr(one, "annotation", None), getattr(one, "returns", None))
            yield from (hint for hint in hints if isinstance(hint, ast.expr))

    def _result(self) -> tuple[str, str] | None:
        """The shape of what is returned, as code of the arguments, and its type in torch; None if that is not certain.

        It is one array, made once with a shape, and filled in place.
        """
        inner = {id(one) for each in ast.walk(self.node) if each is not self.node and isinstance(each, ast.FunctionDef)
                 for one in ast.walk(each)}  # fmt: skip
        returned = [one.value for one in ast.walk(self.node) if isinstance(one, ast.Return) and id(one) not in inner]
        names = {one.id if isinstance(one, ast.Name) else "" for one in returned}
        if len(names) != 1 or not (name := names.pop()):
            return None
        stores = [
            one
            for one in ast.walk(self.node)
            if isinstance(one, ast.Name) and one.id == name and not isinstance(one.ctx, ast.Load)
        ]
        made = [one for one in self.node.body if isinstance(one, ast.Assign) and one.targets[0] in stores]
        changed = any(
            isinstance(one, ast.Attribute) and ast.unparse(one.value) == name and one.attr in _RESHAPES
            for one in ast.walk(self.node)
        )
        if len(stores) != 1 or len(made) != 1 or changed or not isinstance(made[0].value, ast.Call):
            return None
        return self._made_by(made[0].value)

    def _made_by(self, call: ast.Call) -> tuple[str, str] | None:
        if self._name(call.func) not in _MAKERS or not call.args or len(call.args) > 2:
            return None
        keywords = {one.arg: one.value for one in call.keywords}
        dtype = keywords.pop("dtype", None) or (call.args[1] if len(call.args) == 2 else None)
        word = "float64" if dtype is None else _DTYPES.get(self._name(dtype) or ast.unparse(dtype), "")
        read = {one.id for one in ast.walk(call.args[0]) if isinstance(one, ast.Name)}
        if keywords or not word or not read <= {one.arg for one in self.params} | self.unpacked.keys():
            return None
        return ast.unparse(call.args[0]), f"{self._torch}.{word}"

    @property
    def unpacked(self) -> dict[str, str]:
        """What the function takes out of its arguments before all else, and never changes: ``rows, columns = shape``."""
        found: dict[str, str] = {}
        params = {one.arg for one in self.params}
        stored = [one.id for one in ast.walk(self.node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)]
        for one in self.node.body:
            if isinstance(one, ast.Assign) and isinstance(one.value, ast.Name) and one.value.id in params:
                names = [each.id for each in ast.walk(one.targets[0]) if isinstance(each, ast.Name)]
                if all(stored.count(name) == 1 for name in names) and one.value.id not in stored:
                    found |= dict.fromkeys(names, ast.unparse(one))
        return found


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
        others = [one for one in (annotation.left, annotation.right) if ast.unparse(one) != "None"]
        return _optional(others, torch)
    if not isinstance(annotation, ast.Subscript):
        return ""
    word = ast.unparse(annotation.value).rpartition(".")[2]
    inside = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
    if word == "Optional":
        return _optional(inside, torch)
    kinds = {ast.unparse(one) for one in inside} - {"..."}
    return f"{_TYPES[kinds.pop()]}[]" if word in _SEQUENCES and kinds in ({"int"}, {"float"}) else ""


def _optional(inside: Sequence[ast.expr], torch: str) -> str:
    inner = _type_of(inside[0], torch) if len(inside) == 1 else ""
    return f"{inner}?" if inner and not inner.endswith("?") else ""


def _operator(source: Source, function: cst.FunctionDef, helper: _Helper, torch: str, stem: str) -> Change:
    """The helper under another name, the operator that runs it, what the operator gives while tracing, and a function of
    the helper's name that calls the operator."""
    assert helper.result is not None
    shape, dtype = helper.result
    plain = function.name.value.strip("_")
    inner, op, name = source.fresh(f"{plain}_with_numpy"), source.fresh(f"{plain}_in_graph"), f"{stem}_{plain}"
    names = ", ".join(one.arg for one in helper.params)
    schema = ", ".join(f"{kind} {one.arg}" for one, kind in zip(helper.params, helper.types, strict=True))
    unpacked = "".join(f"    {one}\n" for one in dict.fromkeys(helper.unpacked.values()))
    made = statements(
        f"@{torch}.library.custom_op(\n"
        f'    "{_SPACE}::{name}",\n'
        "    mutates_args=(),\n"
        f'    schema="({schema}) -> Tensor",\n'
        f"    tags=({torch}.Tag.nondeterministic_seeded,),\n"
        f")\ndef {op}({names}):\n    return {torch}.from_numpy({inner}({helper.passed}))\n\n\n"
        "# It moves NumPy's generator on: equal calls must not become one.\n"
        f"{op}.register_effect({torch}._library.effects.EffectType.ORDERED)\n\n\n"
        f"@{op}.register_fake\ndef _({names}):\n{unpacked}    return {torch}.empty({shape}, dtype={dtype})\n"
    )
    call = f"return {torch}.ops.{_SPACE}.{name}({names}).numpy()\n"
    outer = function.with_changes(body=cst.IndentedBlock([*_docstring(function), *statements(call)]))
    first = function.with_changes(name=cst.Name(inner))
    space = [cst.EmptyLine(indent=False)] * 2
    rest: list[cst.BaseStatement] = []
    for one in (*made, outer):
        comments = [line for line in getattr(one, "leading_lines", ()) if line.comment is not None and one is not outer]
        rest.append(one.with_changes(leading_lines=[*space, *comments]))
    return cst.FlattenSentinel[cst.BaseStatement]([first, *rest])


def _docstring(function: cst.FunctionDef) -> list[cst.BaseStatement]:
    if function.get_docstring() is None or not isinstance(function.body, cst.IndentedBlock):
        return []
    first = function.body.body[0]
    return [first] if isinstance(first, cst.BaseStatement) else []


FAMILY = Family("NumPy draws", ("graph-break",), _propose, ("GB0033", "GB0124", "GB0170", "GB0206", "GB0007"))
