"""The launches of Triton kernels in Inductor's output code, and what the head of a kernel says.

The texts are parsed and never executed: they may come from a trace from elsewhere.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from irscope.ir.cpp_kernels import is_cpp, parameters_of
from irscope.vocabulary.records import dataclass

_ALLOCATES = re.compile(r"^_?empty_strided(_\w+)?$")
_ALIAS = re.compile(
    r"^\s*(?P<part>\w+) = reinterpret_tensor\((?P<whole>\w+), .*, (?P<offset>\d+)\)  # alias$", re.MULTILINE
)
_CONCATENATED = re.compile(r"^\s*(\w+)(?:: .*?)? = torch\.ops\.aten\.cat\.default\(\[([\w, ]*)\]", re.MULTILINE)
_RETURNED = re.compile(r"^#\s+return (?P<nodes>%.*)$", re.MULTILINE)
_BLOCK = re.compile(r"^(?:[XYZ]|R\d?_?|R)BLOCK(?:_\d+)?$|^RSPLIT(?:_SIZE)?$|^NUM_STAGES$")

DTYPES = {
    "fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "i64": "int64", "i32": "int32", "i16": "int16",
    "i8": "int8", "i1": "bool", "u1": "bool", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "fp8e4nv": "float8_e4m3fn", "fp8e5": "float8_e5m2", "fp8e4b8": "float8_e4m3fnuz", "fp8e5b16": "float8_e5m2fnuz",
}  # fmt: skip
"""Types of elements, as the signatures of kernels have them, and as torch has them."""


@dataclass(frozen=True)
class Tensor:
    """A tensor of output code at one moment.

    Args:
        memory: The name by which its memory was allocated; tensors of one memory share it.
        holds: The buffer whose value it holds; empty if nothing was written to the memory yet, ``0`` for zeros.
        shape, strides, offset: In elements; sizes that depend on inputs are expressions.  A shape of None: the output
            code does not tell.
        dtype: Without ``torch.``; empty if only the kernel's signature has it.
        name: What a launch calls it.
        held: Shape, strides and offset of the buffer that it holds, if the launch sees that in another form.
    """

    memory: str
    holds: str
    shape: tuple[int | str, ...] | None = None
    strides: tuple[int | str, ...] = ()
    offset: int | str = 0
    dtype: str = ""
    name: str = ""
    held: tuple[tuple[int | str, ...], tuple[int | str, ...], int | str] | None = None


@dataclass(frozen=True)
class Launch:
    """A call of a kernel: its line in the output code, and its arguments in order, numbers as expressions."""

    kernel: str
    line: int
    arguments: tuple[Tensor | int | str, ...]


@dataclass(frozen=True)
class KernelHead:
    """What the decorators of a kernel say of it."""

    name: str
    parameters: tuple[str, ...]
    constexprs: frozenset[str]
    heuristic: str
    """``pointwise``, ``reduction``, ``template``, …"""
    signature: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    size_hints: Mapping[str, int] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)
    """What Inductor says for the launcher: the kind of grid and what is written."""
    configs: tuple[Mapping[str, Any], ...] = ()
    """Block sizes of the user's own kernel."""
    divisible: tuple[str, ...] = ()
    """Parameters of which Triton is told that 16 divides them: addresses in bytes, and sizes."""

    def named(self, arguments: Sequence[Any], blocks: Mapping[str, Any]) -> tuple[dict[str, Any], list[Any]]:
        """The arguments of a launch by parameter, and those that are left over: a grid."""
        passed = [name for name in self.parameters if name not in blocks]
        return dict(zip(passed, arguments, strict=False)), list(arguments[len(passed) :])

    @property
    def size_facts(self) -> dict[str, Any]:
        """What Inductor tells Triton about sizes: its hints, and which arguments 16 divides; empty if it tells nothing."""
        whole = [name for name, kind in self.signature.items() if str(kind).startswith(("*", "i"))]
        others = [name for name in whole if name not in self.divisible]
        facts = {"size_hints": dict(self.size_hints), "divisible_by_16": list(self.divisible), "others": others}
        return facts if self.signature and self.heuristic != "cpp" else {}

    @property
    def blocks(self) -> tuple[str, ...]:
        """The parameters that are sizes of blocks, which no launch passes."""
        return tuple(name for name in self.parameters if name in self.constexprs and _BLOCK.match(name))


def head_of(text: str, name: str) -> KernelHead:
    """The head of a kernel.  Raises LookupError for a text that has no such function."""
    if is_cpp(text):
        signature = parameters_of(text)
        return KernelHead(name, tuple(signature), frozenset(), "cpp", signature)
    try:
        functions = [each for each in ast.parse(text).body if isinstance(each, ast.FunctionDef)]
    except (SyntaxError, ValueError, RecursionError) as error:
        raise LookupError(f"The text of {name} is not Python: {error}.") from None
    # A kernel of the user's keeps the name of its function.
    function = next((each for each in functions if each.name == name), functions[-1] if functions else None)
    if function is None:
        raise LookupError(f"The text of {name} defines no function.")
    said: dict[str, Any] = {}
    heuristic = ""
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call):
            heuristic = ast.unparse(decorator.func).rpartition(".")[2]
            said = {each.arg: _literal(each.value) for each in decorator.keywords if each.arg}
    triton = _mapping(said.get("triton_meta"))
    configs = said.get("configs")
    return KernelHead(
        function.name, tuple(each.arg for each in function.args.args),
        frozenset(each.arg for each in function.args.args if "constexpr" in ast.unparse(each.annotation or each)),
        heuristic, _mapping(triton.get("signature")), _mapping(triton.get("constants")), _mapping(said.get("size_hints")),
        _mapping(said.get("inductor_meta")),
        tuple(_mapping(_mapping(each).get("kwargs")) for each in configs) if isinstance(configs, list) else (),
        tuple(_divisible(function, triton.get("configs"))),
    )  # fmt: skip


def _divisible(function: ast.FunctionDef, attributes: Any) -> Iterator[str]:
    """From ``[{(0,): [['tt.divisibility', 16]]}]``, as torch 2.9 to 2.15 write it: numbers are those of parameters."""
    told = _mapping(attributes[0]) if isinstance(attributes, list) and attributes else {}
    for number, parameter in enumerate(function.args.args):
        if ["tt.divisibility", 16] in (told.get((number,)) or []):
            yield parameter.arg


def _mapping(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def _is_key(node: ast.expr) -> bool:
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    return all(isinstance(part, ast.Constant) for part in parts)


def _literal(node: ast.expr) -> Any:
    """A literal as Python; what is none (``DeviceProperties(…)``) is None."""
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {ast.literal_eval(key): _literal(value) for key, value in pairs if key is not None and _is_key(key)}
    if isinstance(node, ast.List | ast.Tuple):
        return [_literal(each) for each in node.elts]
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError):
        return None


def returned_nodes(output_code: str) -> dict[str, tuple[str, ...]]:
    """Kernel → the graph nodes that its comment says it returns, in the order of its scheduler nodes."""
    found: dict[str, tuple[str, ...]] = {}
    for match in _RETURNED.finditer(output_code):
        defined = re.match(r"\n(?:#.*\n)*(\w+) = async_compile", output_code[match.end() :])
        if defined is not None:
            names = tuple(each.strip().lstrip("%") for each in match["nodes"].split(","))
            found[defined[1]] = names
    return found


def launches_in(output_code: str) -> list[Launch]:
    """All launches of kernels, in order.  Raises LookupError if the text is not Python."""
    try:
        tree = ast.parse(output_code)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise LookupError(f"The output code cannot be read: {error}.") from None
    found, wholes = list[Launch](), wholes_of_parts(output_code)
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and function.name.startswith(("call", "partition_", "subgraph_")):
            found += _Reader(wholes).read(function)
    return found


_READ = re.compile(r"\b(?:load|atomic_\w+)\((\w+)")
_WRITTEN = re.compile(r"\b(?:store|atomic_\w+)\((\w+)")
_ADDED_TO = re.compile(r"\batomic_\w+\((\w+)")


@dataclass(frozen=True)
class Access:
    """The parameters whose memory a kernel's text reads, writes, and changes by atomic operations."""

    read: frozenset[str]
    written: frozenset[str]
    added_to: frozenset[str]


def accesses_of(text: str) -> Access:
    """What a kernel does with the memory of its parameters, as far as its text names them."""
    if is_cpp(text):
        written = {name for name in parameters_of(text) if "out_ptr" in name}
        read = {name for name in parameters_of(text) if re.search(rf"loadu\({name}\b|= {name}\[", text)}
        return Access(frozenset(read), frozenset(written), frozenset())
    return Access(*(frozenset(form.findall(text)) for form in (_READ, _WRITTEN, _ADDED_TO)))


def parts_of_results(output_code: str) -> dict[str, tuple[str, int]]:
    """Buffer → the buffer of the library's result that contains it, and the number of the part."""
    found = re.findall(r"^\s*(\w+) = (\w+)\[(\d+)\]$", output_code, re.MULTILINE)
    return {part: (whole, int(index)) for part, whole, index in found}


def wholes_of_parts(output_code: str) -> dict[str, tuple[str, int]]:
    """Buffer → the buffer that contains it, and its first element there: what several kernels write in parts."""
    return {each["part"]: (each["whole"], int(each["offset"])) for each in _ALIAS.finditer(output_code)}


def concatenated(output_code: str, graph: str, nodes: Mapping[str, str]) -> dict[str, str]:
    """Buffer → node, of buffers that are written in parts and of these parts: a concatenation and what it joins.

    Args:
        graph: The text of the last graph.
        nodes: Buffer → node, as known; a part may be said to be the concatenation.
    """
    parts: dict[str, list[tuple[int, str]]] = {}
    for part, (whole, offset) in wholes_of_parts(output_code).items():
        parts.setdefault(whole, []).append((offset, part))
    joins = [(node, joined.split(", ")) for node, joined in _CONCATENATED.findall(graph)]
    found: dict[str, str] = {}
    for whole, each in parts.items():
        names = [part for _, part in sorted(each)]
        fitting = [
            (node, joined) for node, joined in joins
            if len(joined) == len(names) and any(part in nodes for part in names)
            and all(nodes.get(part, one) in (one, node) for part, one in zip(names, joined, strict=True))
        ]  # fmt: skip
        if len(fitting) == 1:
            node, joined = fitting[0]
            found.update(zip([whole, *names], [node, *joined], strict=True))
    return found


def unfinished(output_code: str, graph: str, nodes: Mapping[str, str]) -> set[str]:
    """Buffers that hold a sum which later kernels divide, though their node is a mean or a variance: the comment of the launch
    names the buffer and no node."""
    named = {each for names in returned_nodes(output_code).values() for each in names}
    divided = set(re.findall(r"^\s*(\w+)(?:: .*?)? = torch\.ops\.aten\.(?:mean|var)\.", graph, re.MULTILINE))
    return {buffer for buffer, node in nodes.items() if buffer in named and node in divided}


def without_bias(output_code: str) -> tuple[str, ...]:
    """Buffers that hold a convolution to which a later kernel adds the bias."""
    return tuple(re.findall(r"^\s*(\w+) = extern_kernels\.convolution\(.*, bias=None\)$", output_code, re.MULTILINE))


class _Reader:
    """Follows the names of one function of output code."""

    def __init__(self, wholes: Mapping[str, tuple[str, int]]) -> None:
        self._wholes = wholes
        self._written: set[str] = set()
        """Parts of buffers."""
        self._tensors: dict[str, Tensor] = {}
        self._holds: dict[str, str] = {}  # memory → the buffer that was written last
        self._numbers: dict[str, int | str] = {}
        self.launches: list[Launch] = []

    def read(self, function: ast.FunctionDef) -> list[Launch]:
        for statement in _statements(function.body):
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                self._assigned(statement.targets[0], statement.value)
            elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                self._called(statement.value)
        return self.launches

    def _assigned(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            for each in target.elts if isinstance(value, ast.Name) else ():
                if isinstance(each, ast.Name):
                    self._tensors[each.id] = Tensor(each.id, each.id)
                    self._holds[each.id] = each.id
            return
        if not isinstance(target, ast.Name):
            return
        name = target.id
        if isinstance(value, ast.Call):
            called = ast.unparse(value.func).rpartition(".")[2]
            if _ALLOCATES.match(called) and len(value.args) >= 3:
                shape, strides = _sizes(value.args[0]), _sizes(value.args[1]) or ()
                self._tensors[name] = Tensor(name, "", shape, strides, 0, ast.unparse(value.args[2]).rpartition(".")[2])
                self._holds[name] = ""
                return
            if called in ("reinterpret_tensor", "copy_if_misaligned"):
                if (tensor := self._tensor(value)) is not None:
                    self._tensors[name] = tensor
                return
            self._called(value)
        elif isinstance(value, ast.Name) and value.id in self._tensors:
            self._tensors[name] = self._tensors[value.id]
            return
        elif isinstance(value, ast.BinOp | ast.Constant):
            self._numbers[name] = _number(value)
            return
        # What a library returned, or a part of it.
        self._tensors[name] = Tensor(name, name)
        self._holds[name] = name

    def _called(self, call: ast.Call) -> None:
        text = ast.unparse(call.func)
        if text in ("assert_size_stride", "assert_tensor_metadata") and len(call.args) >= 3:
            self._asserted(*call.args[:3])
            return
        if (text.endswith(".run") and text.count(".") == 1) or text.startswith("cpp_fused_"):
            given = tuple(self._argument(each) for each in call.args)
            self.launches.append(Launch(text.removesuffix(".run"), call.lineno, given))
        if text.endswith((".zero_", ".fill_")) and isinstance(call.func, ast.Attribute):
            self._wrote(call.func.value, "0")
        if text.startswith(("assert_", "print", "args.", "start_graph", "end_graph")) or text.endswith("set_device"):
            return
        for each in [*call.args, *(keyword.value for keyword in call.keywords)]:
            self._wrote(each, "")

    def _asserted(self, tensor: ast.expr, shape: ast.expr, strides: ast.expr) -> None:
        """The form of a tensor that the code checks, if it is not known."""
        known = self._tensors.get(tensor.id) if isinstance(tensor, ast.Name) else None
        if known is not None and known.shape is None and isinstance(tensor, ast.Name):
            form = Tensor(known.memory, known.holds, _sizes(shape), _sizes(strides) or (), 0, known.dtype)
            self._tensors[tensor.id] = form

    def _wrote(self, expression: ast.expr, content: str) -> None:
        """The memory of a tensor that a call gets may have been written by it, if nothing was in it or it is reused."""
        for node in ast.walk(expression):
            if isinstance(node, ast.Name) and node.id in self._tensors:
                memory = self._tensors[node.id].memory
                self._written.add(node.id)
                self._holds[memory] = content or self._wholes.get(node.id, (node.id, 0))[0]

    def _argument(self, node: ast.expr) -> Tensor | int | str:
        tensor = self._tensor(node)
        if tensor is not None:
            name = next(
                (each.id for each in ast.walk(node) if isinstance(each, ast.Name) and each.id in self._tensors), ""
            )
            holds = self._holds.get(tensor.memory, "")
            if name in self._wholes and holds != "0":
                holds = name if name in self._written else ""
            held, form = self._tensors.get(holds), None
            if (
                held is not None
                and held.shape is not None
                and (held.shape, held.strides) != (tensor.shape, tensor.strides)
            ):
                form = held.shape, held.strides, held.offset
            return Tensor(tensor.memory, holds, tensor.shape, tensor.strides, tensor.offset, tensor.dtype, name, form)
        number = _number(node)
        return self._numbers.get(number, number) if isinstance(number, str) else number

    def _tensor(self, node: ast.expr) -> Tensor | None:
        if isinstance(node, ast.Name):
            return self._tensors.get(node.id)
        if not isinstance(node, ast.Call) or not node.args:
            return None
        base = self._tensor(node.args[0])
        called = ast.unparse(node.func).rpartition(".")[2]
        if base is None or called != "reinterpret_tensor" or len(node.args) < 3:
            return base
        offset = _number(node.args[3]) if len(node.args) > 3 else 0
        return Tensor(base.memory, base.holds, _sizes(node.args[1]), _sizes(node.args[2]) or (), offset, base.dtype)


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        if isinstance(statement, ast.With | ast.If | ast.For | ast.Try):
            yield from _statements(statement.body)


def _sizes(node: ast.expr) -> tuple[int | str, ...] | None:
    return tuple(_number(each) for each in node.elts) if isinstance(node, ast.Tuple | ast.List) else None


def _number(node: ast.expr) -> int | str:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError):
        return ast.unparse(node)
    return value if isinstance(value, int) and not isinstance(value, bool) else ast.unparse(node)
