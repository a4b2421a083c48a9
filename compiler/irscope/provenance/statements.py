"""Which node of the graph a statement of a generated kernel computes.

Inductor says which nodes a kernel came from, but not which of its statements computes which of them.  That is derived
here, for C++ and Triton kernels alike: the operation of a statement must be the node's, and so must be its operands,
as far as they are known: a load from an argument of the kernel is a buffer, a constant is in the graph, and the
result of a statement that is matched already is its node.  Where several nodes fit a statement has all of them, and
where none does it has none: a link is left out rather than made up.  Loads, constants and casts belong to what they
are for, stores to what they keep.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from irscope.ir.nodes import VIEWS
from irscope.provenance.elements import Item, Items
from irscope.vocabulary.records import dataclass

_ALSO: Mapping[str, str] = {
    "add": "addmm index_put scatter_add embedding_dense_backward cumsum",
    "sub": "var_mean",
    "mul": "var_mean square pow native_dropout",
    "truediv": "div mean var_mean",
    "maximum": "relu clamp_min clamp amax max",
    "minimum": "clamp_max clamp amin min",
    "amax": "max",
    "sum": "mean var_mean",
    "welford": "var_mean var mean std native_layer_norm native_batch_norm",
    "where": "masked_fill triu tril threshold_backward",
    "erf": "gelu",
    "rand": "inductor_random native_dropout inductor_randint",
    "load_index": "embedding index gather",
}
"""Operations of kernels → further operations of graphs to which they belong."""

_NAMES: Mapping[str, str] = {
    "max": "maximum", "min": "minimum", "max_propagate_nan": "maximum", "min_propagate_nan": "minimum",
    "clamp_min": "maximum", "clamp_max": "minimum", "max2": "amax", "min2": "amin", "blendv": "where",
    "normalized_rand_cpu": "rand", "randn_cpu": "rand", "randint64_cpu": "rand", "rand": "rand", "fabs": "abs",
    "vec_reduce_all": "sum", "cascade_sum_combine": "sum", "welford": "welford", "welford_combine": "welford", "welford_reduce": "welford",
    "atomic_add": "add", "div_floor_integer": "floor", "trunc": "trunc", "sqrt_rn": "sqrt", "div_rn": "truediv",
}  # fmt: skip
_CALLED = frozenset({
    "exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "sqrt", "rsqrt", "sin", "cos", "tan", "tanh", "sinh", "cosh",
    "asin", "acos", "atan", "atan2", "erf", "erfc", "lgamma", "abs", "neg", "reciprocal", "sigmoid", "maximum", "minimum",
    "where", "pow", "floor", "ceil", "round", "isnan", "isinf", "sum", "prod", "any", "argmax", "argmin", "fmod",
    "cumsum", "relu", "signbit",
}) | _NAMES.keys()  # fmt: skip
_OPERATORS = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "<": "lt", ">": "gt", "<=": "le", ">=": "ge", "==": "eq",
    "!=": "ne", "&": "bitwise_and", "|": "bitwise_or", "&&": "logical_and", "||": "logical_or", "%": "remainder",
    "^": "bitwise_xor",
}  # fmt: skip
_LOGICAL = {"bitwise_and": "logical_and", "bitwise_or": "logical_or", "logical_and": "bitwise_and"}

_ASSIGNED = re.compile(
    r"^\s*(?:auto |const auto |(?:float|double|int\w*|bool|at::vec::\S+) )?(?P<name>_?tmp\w*(?:, _?tmp\w*)*) = (?P<value>.+?);?$"
)
_STORED = re.compile(
    r"^\s*(?:(?P<vector>tmp\w*)\.store\((?P<a>\w+)|tl\.(?:store|atomic_add)\((?P<b>\w+) \+ .*?, (?P<value>_?tmp\w*)[,)]"
    r"|(?:atomic_add\w*\(&?)?(?P<c>(?:in_)?(?:out_)?ptr\w*|in_out_ptr\w*)\[.*?\](?: \+?=|,) (?P<rest>.+)$)"
)
_LOAD = re.compile(r"(?:loadu?\(\s*|^)(?P<pointer>(?:in_|out_|in_out_)ptr\w+)\b(?P<index>.*)")
_TEMPORARY = re.compile(r"\b_?tmp\w*\b(?!\.store)")
_CALL = re.compile(
    r"(?:std::|tl_math\.|libdevice\.|triton_helpers\.|at::vec::|tl\.|\.|\b)(?P<name>[a-z]\w*)(?:<[^<>()]*>)?\("
)
_BINARY = re.compile(
    r"(?P<a>_?tmp\w*|\(-?[\d.e+-]+\)) (?P<op>[-+*/%^]|[<>]=?|[=!]=|&&?|\|\|?) (?P<b>_?tmp\w*|-?[\d.][\w.+-]*)"
)
_LITERAL = re.compile(
    r"^(?:static_cast<\w+>\(|decltype\(\w+\)\(|tl\.full\(\[[\d, ]*\], |at::vec::Vectorized<\w+>\()?"
    r"(?P<number>-?(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?|inf|std::numeric_limits<\w+>::infinity\(\)|float\(\"-?inf\"\)))"
)
_ALIAS = re.compile(r"^\s*auto (?P<name>\w+ptr\w*) = (?P<of>\w+ptr\w*);$")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d*)?(?:e[+-]?\d+)?(?![\w.])")


@dataclass
class _Value:
    """What a temporary holds: nodes that it may be, or a constant; and the lines that made it."""

    nodes: frozenset[str] = frozenset()
    constant: float | None = None
    lines: list[int] = field(default_factory=list)
    """Lines without their own operation, which belong to whatever uses the value."""


def nodes_of_statements(
    text: str, graph: Items, graph_text: str, origins: Iterable[str], buffers: Mapping[str, Iterable[str]]
) -> dict[int, tuple[str, ...]]:
    """Line (1-based) of a kernel → names of the nodes that it computes.

    Args:
        origins: The nodes that the kernel came from.
        buffers: Argument of the kernel (``in_ptr0``) → the nodes whose value it may hold.
    """
    return _Matcher(graph, graph_text.split("\n"), origins, buffers).read(text.split("\n"))


class _Matcher:
    def __init__(
        self, graph: Items, rows: Sequence[str], origins: Iterable[str], buffers: Mapping[str, Iterable[str]]
    ) -> None:
        self._graph = graph
        known = [graph.by_name[name] for name in dict.fromkeys(origins) if name in graph.by_name]
        mine = [item for item in known if item.op == "call"]
        self._by_operation: dict[str, list[Item]] = defaultdict(list)
        self._inputs: dict[str, frozenset[str]] = {}
        self._numbers: dict[str, frozenset[float]] = {}
        for item in mine:
            name = item.element.name
            self._by_operation[operation(item.target)].append(item)
            self._inputs[name] = frozenset(self._base(one) for one in item.inputs)
            row = rows[item.element.line - 1] if item.element.line <= len(rows) else ""
            call = row.partition(" = ")[2].partition("(")[2].rpartition(")")[0]
            self._numbers[name] = frozenset(float(number) for number in _NUMBER.findall(call))
        self._buffers = {name: frozenset(self._base(node) for node in nodes) for name, nodes in buffers.items()}
        self._arguments = self._buffers
        self._values: dict[str, _Value] = {}
        self._found: dict[int, frozenset[str]] = {}
        self._rest: frozenset[str] = frozenset()

    def read(self, rows: Sequence[str]) -> dict[int, tuple[str, ...]]:
        self._pass_over(rows)
        seen = frozenset[str]().union(*self._found.values())
        computing = [i.element.name for name, items in self._by_operation.items() if name not in VIEWS for i in items]
        rest = [name for name in computing if name not in seen]
        if len(rest) == 1:  # what fits no node belongs to the only one that nothing fits (a pooling, a sort)
            self._rest = frozenset(rest)
            self._pass_over(rows)
        return {
            number: tuple(sorted(nodes, key=lambda name: self._graph.by_name[name].element.line))
            for number, nodes in sorted(self._found.items())
            if nodes
        }

    def _pass_over(self, rows: Sequence[str]) -> None:
        self._values, self._found, self._buffers = {}, {}, dict(self._arguments)
        for number, row in enumerate(rows, 1):
            if match := _ALIAS.match(row):
                self._buffers[match["name"]] = self._buffers.get(match["of"], frozenset())
            elif match := _STORED.match(row):
                self._store(number, match["vector"] or match["value"] or match["rest"])
            elif match := _ASSIGNED.match(row):
                for name in match["name"].split(", "):
                    self._assign(number, name, match["value"])

    def _store(self, number: int, value: str) -> None:
        used = [self._values[name] for name in _TEMPORARY.findall(value) if name in self._values]
        self._compute(number, frozenset[str]().union(*(operand.nodes for operand in used)), used)

    def _assign(self, number: int, name: str, value: str) -> None:
        if (literal := _LITERAL.match(value)) and not _TEMPORARY.search(value):
            self._values[name] = _Value(constant=_float(literal["number"]), lines=[number])
            return
        used = [self._values[other] for other in dict.fromkeys(_TEMPORARY.findall(value)) if other in self._values]
        if (load := _LOAD.search(value)) and "store" not in value:
            self._load(number, name, load, used)
            return
        kind = _operation_of(value, name)
        if not kind:  # a cast, a broadcast
            lines = [number, *(line for operand in used for line in operand.lines)]
            constant = used[0].constant if len(used) == 1 else None
            self._values[name] = _Value(frozenset[str]().union(*(operand.nodes for operand in used)), constant, lines)
            return
        nodes = self._of(kind, used)
        self._compute(number, nodes, used)
        accumulated = self._values.get(name) if "_acc" in name else None
        held = nodes | (accumulated.nodes if accumulated is not None else frozenset())
        self._values[name] = _Value(held, None, [] if nodes else [number])

    def _load(self, number: int, name: str, load: re.Match[str], used: Sequence[_Value]) -> None:
        """A value from memory, which an index that is computed chooses, or which is there as it is."""
        nodes = self._of("load_index", []) if "tmp" in load["index"] else frozenset()
        held = self._buffers.get(load["pointer"], frozenset())
        self._values[name] = _Value(nodes or held, None, [] if nodes else [number])
        if nodes:
            self._compute(number, nodes, used)

    def _of(self, kind: str, used: Sequence[_Value]) -> frozenset[str]:
        """The nodes that an operation on these values may be: those of whose operands most are known to fit."""
        wanted = dict.fromkeys([kind, *([_LOGICAL[kind]] if kind in _LOGICAL else []), *_ALSO.get(kind, "").split()])
        fits: dict[int, set[str]] = defaultdict(set)
        for item in (item for name in wanted for item in self._by_operation.get(name, ())):
            fits[self._fit(item, used)].add(item.element.name)
        return frozenset(fits[max(fits)]) if fits else self._rest

    def _fit(self, item: Item, used: Sequence[_Value]) -> int:
        """How well values fit the operands of a node."""
        name = item.element.name
        score = 0
        if len(used) == 2 and len(item.inputs) == 1 and all(operand.constant is None for operand in used):
            score -= 2 * bool(self._numbers[name])  # its second operand is a constant
        for operand in used:
            if operand.constant is not None:
                score += 2 if operand.constant in self._numbers[name] else -1
            elif operand.nodes & self._inputs[name]:
                score += 2
            elif name in operand.nodes:
                score += 1  # a further step of the same operation
            elif operand.nodes:
                score -= 1
        return score

    def _add(self, number: int, nodes: frozenset[str]) -> None:
        self._found[number] = self._found.get(number, frozenset()) | {n for n in nodes if n in self._inputs}

    def _compute(self, number: int, nodes: frozenset[str], used: Sequence[_Value]) -> None:
        """A line computes nodes, and so do the lines that only gave it what it uses."""
        self._add(number, nodes)
        for operand in used:
            for line in operand.lines:
                self._add(line, nodes)

    def _base(self, name: str) -> str:
        return forms_of(self._graph, name)[-1]


def forms_of(graph: Items, name: str) -> list[str]:
    """A node, and after it those whose values it has in another form, up to the one that computes them."""
    found = [name]
    while len(found) < 100:
        item = graph.by_name.get(found[-1])
        if item is None or operation(item.target) not in VIEWS or not item.inputs:
            break
        found.append(item.inputs[0])
    return found


def operation(target: str) -> str:
    """``torch.ops.aten.add.Tensor`` is ``add``, ``operator.getitem`` is ``getitem``."""
    parts = target.split(".")
    name = parts[3] if parts[:2] == ["torch", "ops"] and len(parts) > 3 else parts[-1]
    return {"div": "truediv"}.get(name, name)


def _operation_of(value: str, name: str) -> str:
    if re.search(r"\b1 / (?:std::)?sqrt\(|\brsqrt\(", value):
        return "rsqrt"
    if "sigmoid" in value or re.search(r"\(1\) / \(.*\(1\) \+ .*exp", value):
        return "sigmoid"
    if called := next((_NAMES.get(word, word) for word in _CALL.findall(value) if word in _CALLED), ""):
        return "amax" if called == "maximum" and "_acc" in name else called
    if " ? " in value:
        return "where"
    if binary := _BINARY.search(value):
        kind = _OPERATORS[binary["op"]]
        accumulates = "_acc" in name or re.search(r"\b_tmp", value) is not None
        return "sum" if kind == "add" and accumulates else kind
    if re.match(r"^[~!]_?tmp", value):
        return "logical_not"
    return "neg" if re.match(r"^-\(?_?tmp|^decltype\(\w+\)\(-", value) else ""


def _float(text: str) -> float | None:
    sign = "-" if text.startswith("-") or "-inf" in text else ""
    if "inf" in text:
        return float(f"{sign}inf")
    try:
        return float(text)
    except ValueError:
        return None


def arguments_in(call: str) -> list[str]:
    """The names that a call hands over, in their order: of ``reinterpret_tensor(buf9, …)``, and in C++ of
    ``(float*)(buf9.data_ptr())``, that is ``buf9``."""
    found: list[str] = []
    depth, start = 0, 0
    inside = call.partition("(")[2].rpartition(")")[0]
    for at, sign in enumerate([*inside, ","]):
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth == 0:
            part = inside[start:at].strip()
            start = at + 1
            data = _DATA.search(part)
            found.append(data[1] if data else part.partition("(")[2].partition(",")[0].strip() if "(" in part else part)
    return found


_DATA = re.compile(r"\((\w+)\.data_ptr\(\)\)$")


def arguments_of(text: str, call: Sequence[str]) -> dict[str, str]:
    """Parameter of a kernel's text → what a call in the output code hands to it (``buf3``, ``primals_1``)."""
    match = _SIGNATURE.search(text)
    if match is None:
        return {}
    parameters = [_LAST_WORD.findall(part.partition(":")[0].partition("=")[0])[-1:] for part in match[1].split(",")]
    return {name[0]: value for name, value in zip(parameters, call, strict=False) if name}


_SIGNATURE = re.compile(r"^(?:extern \"C\".*?\b(?!__)\w+|def \w+)\(([^)]*)\)", re.MULTILINE | re.DOTALL)
_LAST_WORD = re.compile(r"\w+")
