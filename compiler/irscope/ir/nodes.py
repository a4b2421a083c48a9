"""What is known about the nodes of a graph stage beside its text: values, costs and ancestors.

A graph stage's ``data`` (`Store.stage_data`) is one JSON object, written by `irscope.capture.nodes` while the graph is
alive.  What repeats is stored once, in a table, and is named by its index; ``-1`` is *nothing*.

=============  =========================================================================================================
key            value
=============  =========================================================================================================
``graph``      number of the ``torch.fx.Graph`` object in its run: two stages with one number are one graph object at
               two moments, and a source with this number is a node of it
``nodes``      one list per column, in graph order: ``name``, ``op`` (``placeholder``, ``call_function``, …), ``target``
               (→ *targets*), ``inputs`` (indices of nodes, each once), ``value`` (→ *values*), ``flops`` (null if
               PyTorch has no formula), ``stack`` (→ *stacks*), ``module`` (→ *modules*), ``aten`` (→ *targets*: the
               operator before decompositions), ``seq`` (autograd's number, shared by a forward operation and its
               backward), ``from`` (list → *sources*)
``views``      indices of the nodes that only look at memory of others
``backward``   indices of the nodes that belong to the backward, where the graph is a joint one
``targets``    names, as printed: ``aten.mm.default``
``values``     ``["tensor", dtype, sizes, strides, device, bytes]``, ``["symbol", text, hint]``, ``["list", [→ values]]``
               or ``["other", type]``; sizes are numbers, or text where they are symbolic; bytes with hints, null unknown
``frames``     ``[file, line, function]``; ``stacks``: lists → *frames*, outermost first
``modules``    ``[path, class]`` of an ``nn.Module``; a node has the innermost one.  ``module_parents``: the number of
               the one around each, -1 for the outermost
``sources``    ``[name, pass, action, graph, [→ sources]]``: PyTorch's ``NodeSource``; this node came from the node
               ``name`` of graph number ``graph`` (-1: of none), by ``pass``; then what that one came from
``symbols``    hint of each symbolic size: ``{"s0": 8}``
``subgraphs``  the same object (without this key) for each graph module below this one, by its name
``ancestors``  for nodes that came from a text: the lines of the stage above, as text; only where that is a text
``passes``     what ran over the graph (`irscope.pipeline_captures.inductor.passes`); only where passes belong to the stage
=============  =========================================================================================================

A version that a pass made (`StageRef.passed`) has ``{"pass", "seconds", "subgraph", "added", "removed", "changed",
"moved"}`` (names of nodes; whether others only changed places) and, under ``new``, the object above for the nodes that
were added or changed.

To go from a node to the stage before: a node of the same name in a stage of the same ``graph`` number is the same node
at another moment; joint, forward, backward and post-grad nodes keep their names unless a pass creates new ones; else
its sources name nodes of an earlier graph; a backward node without sources has the ``seq`` of the forward node it
belongs to.  What leads on to kernels is the data of ``ir-pre-fusion`` (`irscope.pipeline_captures.inductor.scheduler`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from irscope.ir.graph_statements import output_name
from irscope.ir.graphs import parse_graph
from irscope.pipelines.registry import stage_kind
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.stages import Role

# A statement or a declared input on its own line; an input in a list of them.
_DECLARED = re.compile(r'^\s+(?P<name>\w+)(?:: "[^"]*")?(?: =|;|,|$|\s+#)')
_ARGUMENT = re.compile(r'(?P<name>\w+)(?:: "[^"]*")?\s*[,)]')


@dataclass(frozen=True)
class Value:
    """What a node gives.

    Args:
        kind: ``tensor``, ``symbol``, ``list``, ``other``; empty if unknown.
        sizes, strides: Numbers, or text where they are symbolic.
        bytes: Bytes of the elements, with hints in place of symbols; None if a hint is missing.
    """

    kind: str = ""
    dtype: str = ""
    sizes: tuple[int | str, ...] = ()
    strides: tuple[int | str, ...] = ()
    device: str = ""
    bytes: int | None = None
    text: str = ""
    parts: tuple[Value, ...] = ()


_NO_VALUE = Value()


VIEWS = frozenset({
    "view", "reshape", "_unsafe_view", "permute", "transpose", "t", "expand", "unsqueeze", "squeeze", "select", "slice",
    "alias", "detach", "getitem", "as_strided", "clone", "convert_element_type", "_to_copy",
})  # fmt: skip
"""Operations that give their input's values in another form."""


class Frame(NamedTuple):
    """A line of a node's stack trace; `line` is 1-based."""

    file: str
    line: int
    function: str


class Source(NamedTuple):
    """A node that another came from.  ``graph`` is the number of its graph, -1 if there is none."""

    name: str
    passed: str
    action: str
    graph: int
    sources: tuple[Source, ...]


class NodeFacts(NamedTuple):  # a tuple, because a large graph makes tens of thousands
    """What is known about a node.

    Args:
        line: 1-based line in the stage's text; 0 if it is not found.
        inputs, users: Names of nodes, in graph order of use.
        flops: Floating-point operations by PyTorch's formulas; None if there is none.
        read, written: Bytes of its inputs and of its result, each input once; of a table that it takes rows of only
            these; 0 for a view, which touches no memory; None if a size has no hint.
        stack: Outermost frame first.
        modules: Path and class of each module around it, outermost first.
    """

    name: str
    line: int
    op: str
    target: str
    value: Value
    inputs: tuple[str, ...]
    users: tuple[str, ...]
    flops: int | None
    read: int | None
    written: int | None
    is_view: bool
    is_backward: bool
    stack: tuple[Frame, ...]
    modules: tuple[tuple[str, str], ...]
    original_aten: str
    seq_nr: int | None
    sources: tuple[Source, ...]

    @property
    def module(self) -> tuple[str, str] | None:
        """Path and class of the innermost module; None outside of all."""
        return self.modules[-1] if self.modules else None

    @property
    def is_untold(self) -> bool:
        """Whether it is an operation that a pass or autograd made: the user's own have the line they came from."""
        return self.op.startswith("call_") and (not self.stack or self.is_backward)

    @property
    def moved(self) -> int | None:
        """Bytes that it reads and writes; None if a size has no hint."""
        return None if self.read is None or self.written is None else self.read + self.written

    @property
    def intensity(self) -> float | None:
        """FLOPs per byte that goes through memory."""
        return self.flops / self.moved if self.flops is not None and self.moved else None


NO_FACTS = NodeFacts("", 0, "", "", _NO_VALUE, (), (), None, None, None, False, False, (), (), "", None, ())
"""The facts of a node about which nothing is known."""


def facts_of(data: Any, text: str = "") -> tuple[NodeFacts, ...]:
    """The nodes of a graph stage from its data, with their lines where its text is given.

    Returns an empty tuple for the data of another kind of stage, or for no data.
    """
    if not isinstance(data, dict) or "nodes" not in data:
        return ()
    return tuple(_Reader(data, lines_of(text)).facts())


def dtypes_of(data: Any) -> dict[str, str]:
    """Node of a graph stage → dtype of its first result; empty if it is not a tensor. What `facts_of`
    gives, without the rest."""
    if not isinstance(data, dict) or "nodes" not in data:
        return {}
    values = data["values"]

    def dtype(index: int) -> str:
        if index < 0:
            return ""
        entry = values[index]
        if entry[0] == "list":
            return next((dtype(part) for part in entry[1] if part >= 0), "")
        return str(entry[1]).removeprefix("torch.") if entry[0] == "tensor" else ""

    known = [dtype(index) for index in range(len(values))]
    return {
        name: known[index] if index >= 0 else ""
        for name, index in zip(data["nodes"]["name"], data["nodes"]["value"], strict=True)
    }


def modules_of(data: Any) -> dict[str, str]:
    """Node of a graph stage → path of its innermost module, of those that have one. What `facts_of` gives, without the
    rest."""
    if not isinstance(data, dict) or "nodes" not in data:
        return {}
    paths, columns = [path for path, _ in data["modules"]], data["nodes"]
    return {name: paths[at] for name, at in zip(columns["name"], columns["module"], strict=True) if at >= 0}


def count_of(stage: str, data: Any) -> int | None:
    """How many nodes a stage of this name has by its data: a graph, or Inductor's schedule; None for any other."""
    nodes = data.get("nodes") if isinstance(data, dict) else None
    kind = stage_kind(stage)
    if kind.is_graph:
        nodes = nodes.get("name") if isinstance(nodes, dict) else None
    elif kind.role is not Role.SCHEDULE:
        return None
    return len(nodes) if isinstance(nodes, list) else None


def operation_count(data: Any, text: str) -> int:
    """How many operations a graph stage has: its calls, by its data, else by its text; 0 if neither is a graph."""
    if isinstance(data, dict) and "nodes" in data:
        return sum(op.startswith("call") for op in data["nodes"]["op"])
    try:
        return sum(node.op == "call" for node in parse_graph(text).nodes)
    except ValueError:
        return 0


class _Reader:
    def __init__(self, data: dict[str, Any], lines: dict[str, int]) -> None:
        self._data, self._lines = data, lines
        self._values = [self._value(entry) for entry in data["values"]]
        frames = [Frame(*frame) for frame in data["frames"]]
        self._stacks = [tuple(frames[index] for index in stack) for stack in data["stacks"]]
        self._sources: list[Source] = []
        for name, passed, action, graph, parents in data["sources"]:  # a source is after those it came from
            self._sources.append(Source(name, passed, action, graph, tuple(self._sources[index] for index in parents)))

    def _value(self, entry: Sequence[Any]) -> Value:
        if entry[0] == "tensor":
            _, dtype, sizes, strides, device, size = entry
            return Value("tensor", dtype, tuple(sizes), tuple(strides), device, size)
        if entry[0] == "list":
            parts = tuple(self._value(self._data["values"][index]) for index in entry[1] if index >= 0)
            sizes = [part.bytes for part in parts if part.kind == "tensor"]
            known = [size for size in sizes if size is not None]
            return Value("list", bytes=sum(known) if len(known) == len(sizes) else None, parts=parts)
        return Value(entry[0], text=str(entry[1]), bytes=0)

    def facts(self) -> Iterator[NodeFacts]:
        columns, data = self._data["nodes"], self._data
        names, views, backward = columns["name"], set(data["views"]), set(data["backward"])
        targets, modules = data["targets"], _module_chains(data)
        values = [self._values[index] if index >= 0 else _NO_VALUE for index in columns["value"]]
        sizes = [value.bytes if value.kind else 0 for value in values]
        users = _users(names, columns["inputs"])
        for number, name in enumerate(names):
            op, inputs, target = columns["op"][number], columns["inputs"][number], targets[columns["target"][number]]
            module, aten, stack = columns["module"][number], columns["aten"][number], columns["stack"][number]
            read: int | None = 0
            written: int | None = 0
            if op.startswith("call_") and number not in views:
                written = values[number].bytes
                read = _read(target, [sizes[index] for index in inputs], written)
            yield NodeFacts(
                name,
                self._lines.get(name, 0),
                op,
                target,
                values[number],
                tuple([names[index] for index in inputs]),
                tuple(users[number]),
                columns["flops"][number],
                read,
                written,
                number in views,
                number in backward,
                self._stacks[stack] if stack >= 0 else (),
                modules[module] if module >= 0 else (),
                targets[aten] if aten >= 0 else "",
                columns["seq"][number],
                tuple([self._sources[index] for index in columns["from"][number]]),
            )


def _module_chains(data: Any) -> list[tuple[tuple[str, str], ...]]:
    """Each module of a stage's data with those around it, outermost first."""
    chains: list[tuple[tuple[str, str], ...]] = []
    parents = data.get("module_parents") or [-1] * len(data["modules"])  # older versions know the innermost alone
    for (path, cls), parent in zip(data["modules"], parents, strict=True):  # a parent comes before its children
        chains.append((*(chains[parent] if parent >= 0 else ()), (path, cls)))
    return chains


def _users(names: Sequence[str], inputs: Sequence[Sequence[int]]) -> list[list[str]]:
    """The nodes that use each node."""
    users: list[list[str]] = [[] for _ in names]
    for user, used in enumerate(inputs):
        for number in used:
            users[number].append(names[user])
    return users


def _read(target: str, inputs: Sequence[int | None], result: int | None) -> int | None:
    """Bytes that an operation reads; of a table, as an embedding's, the rows that it takes, which are its result."""
    table = _TAKES_ROWS.get(target)
    if table is None or table >= len(inputs):
        return _sum(inputs)
    whole = inputs[table]
    taken = result if whole is None or result is None else min(whole, result)
    return _sum([*inputs[:table], taken, *inputs[table + 1 :]])


# By the target as a graph has it: which input is the table.
_TAKES_ROWS = {
    "aten.embedding.default": 0,
    "aten.gather.default": 0,
    "aten.index.Tensor": 0,
    "aten._unsafe_index.Tensor": 0,
    "aten.index_select.default": 0,
    "aten.take.default": 0,
    "torch.nn.functional.embedding": 1,
}


def _sum(sizes: Sequence[int | None]) -> int | None:
    return None if None in sizes else sum(size or 0 for size in sizes)


def lines_of(text: str) -> dict[str, int]:
    """The 1-based line of each node in a printed graph; of a text with submodules those of the outermost ``forward``."""
    found: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("return"):
            found[output_name(found)] = number
            break
        if line.lstrip().startswith("def forward("):
            for argument in _ARGUMENT.finditer(line.partition("(")[2]):
                found.setdefault(argument["name"], number)
        elif match := _DECLARED.match(line):
            found.setdefault(match["name"], number)
    return found
