"""What is computed between the start of a collective and its wait, in the order of a graph or of Inductor's output code.

A collective runs beside what is between the two.  If nothing is, the rank does nothing else until it has ended.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from irscope.comparing.ranks.normalized import collective_of, group_of, reduction_of
from irscope.ir.graphs import GraphNode, parse_graph, short_target
from irscope.ir.nodes import facts_of
from irscope.vocabulary.patterns import pattern
from irscope.vocabulary.records import dataclass

MOST_COLLECTIVES = 500
"""The most collectives of one text; the first ones count."""
_MOST_STEPS = 20_000
"""Between a start and its wait: texts from elsewhere may have any number."""
_WAIT = "wait_tensor"
_SIZED = ("all_gather", "reduce_scatter")
"""Operations whose last number is the size of the group."""
_SIZE = pattern(r"\b(\d+), '[^']*'(?:, out=.*)?\)?$")
_NO_WORK = frozenset(
    [
        "view",
        "_unsafe_view",
        "reshape",
        "permute",
        "transpose",
        "t",
        "slice",
        "select",
        "split",
        "split_with_sizes",
        "getitem",
        "alias",
        "expand",
        "unsqueeze",
        "squeeze",
        "as_strided",
        "detach",
        "unbind",
        "empty",
        "empty_strided",
        "empty_like",
        "new_empty",
        "lift_fresh_copy",
        "sym_size",
    ]
)
"""Operators that only look at memory of others, or make some."""
_OVERLOAD = pattern(r"^(?:aten|operator)\.(\w+)(?:\.\w+)?$")
_QUOTES = pattern(r"\'\'\'|\"\"\"")
_DEFINED = pattern(r"^(\w+) = async_compile\.", re.MULTILINE)
_CALL = pattern(r"^\s+(?:(?P<target>\w+) = )?(?P<name>[A-Za-z_][\w.]*?)(?:\.run)?\((?P<args>.*)\)\s*(?:#.*)?$")
_ALIAS = pattern(r"^\s+(\w+) = (?:reinterpret_tensor\()?(\w+)\b(?!\.)")
_NAME = pattern(r"(?<![\w.'])[A-Za-z_]\w*")
_EXTERN = ("extern_kernels.", "aten.", "torch.ops.")
_HELPER = "torch.ops.inductor."
_C10D = "c10d_functional."


@dataclass(frozen=True)
class Step:
    """An operation of a graph, or a call of a kernel.  What it reads, writes and computes is None if it is not known."""

    name: str
    moved: int | None = None
    flops: int | None = None


@dataclass(frozen=True)
class Span:
    """A collective, from its start to its wait.

    Args:
        node: The node of the graph that starts it; empty in output code.
        start, wait: 1-based lines of the text; ``wait`` is 0 if nothing there waits for it.
        steps: What is computed in between.  None if nothing waits for it: nobody knows then what runs beside it.
    """

    node: str
    operation: str
    reduction: str
    group: str
    group_size: int | None
    start: int
    wait: int
    steps: tuple[Step, ...] | None


class _Open:
    """The collectives that have started, by the names of what they write."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._found: list[tuple[GraphNode, str, int, int, int]] = []
        self._by_name: dict[str, int] = {}

    def start(self, node: GraphNode, text: str, names: list[str]) -> None:
        if len(self._found) == MOST_COLLECTIVES:
            return
        self._by_name.update(dict.fromkeys(names, len(self._found)))
        self._found.append((node, text, len(self.steps), -1, 0))

    def wait(self, names: list[str], line: int) -> None:
        for name in names:
            if (at := self._by_name.get(name)) is not None:
                node, text, begun, ended, _ = self._found[at]
                if ended < 0:  # only the first tensor that is waited for counts
                    self._found[at] = node, text, begun, len(self.steps), line
                return

    def spans(self) -> Iterator[Span]:
        for node, text, begun, ended, wait in self._found:
            operation = collective_of(node)
            sized = _SIZE.search(text) if operation.startswith(_SIZED) else None
            alone = replace(node, line=1)
            yield Span(
                node.name,
                operation,
                reduction_of(text, alone),
                group_of(text, alone),
                int(sized[1]) if sized else None,
                node.line,
                wait,
                None if ended < 0 else tuple(self.steps[begun : min(ended, begun + _MOST_STEPS)]),
            )


# --- graphs -----------------------------------------------------------------------------------------------------------


def spans_of_graph(text: str, data: Any = None) -> list[Span]:
    """The collectives of a printed graph, in its order.  Raises ValueError for any other text.

    Args:
        data: What is kept of its stage beside the text (`irscope.ir.nodes`).
    """
    return list(_walk_graph(text, data).spans())


def steps_of_graph(text: str, data: Any = None) -> list[Step]:
    """All that a printed graph computes.  Raises ValueError for any other text."""
    return _walk_graph(text, data).steps


def _walk_graph(text: str, data: Any) -> _Open:
    lines, running = text.split("\n"), _Open()
    costs = {facts.name: facts for facts in facts_of(data)}
    alias: dict[str, str] = {}
    for node in parse_graph(text).nodes:
        if node.op != "call":
            continue
        operator = _OVERLOAD.sub(r"\1", short_target(node.target))
        inputs = [alias.get(name, name) for name in node.inputs]
        if collective_of(node):
            statement = lines[node.line - 1].split(";  ", 1)[0].split("  #", 1)[0].rstrip()
            running.start(node, statement, [node.name])
        elif _WAIT in node.target:
            running.wait(inputs, node.line)
        elif operator in _NO_WORK or ((facts := costs.get(node.name)) is not None and facts.is_view):
            if inputs:
                alias[node.name] = inputs[0]
        else:
            facts = costs.get(node.name)
            moved = None if facts is None or None in (facts.read, facts.written) else facts.read + facts.written  # type: ignore[operator]
            running.steps.append(Step(short_target(node.target), moved, None if facts is None else facts.flops))
    return running


# --- output code ------------------------------------------------------------------------------------------------------


def spans_of_code(text: str, data: Any = None) -> list[Span]:
    """The collectives of Inductor's output code in Python, in its order; none of any other text.

    Args:
        data: What is kept of its stage beside the text: the costs of its calls.
    """
    return list(_walk_code(text, data).spans())


def steps_of_code(text: str, data: Any = None) -> list[Step]:
    """All kernels that output code calls, but for collectives."""
    return _walk_code(text, data).steps


def _walk_code(text: str, data: Any) -> _Open:
    running, alias, costs = _Open(), dict[str, str](), _costs(data)
    for line, name, target, args in calls_of_code(text, alias):
        if _C10D not in name and not name.startswith("torch.ops.symm_mem."):
            running.steps.append(_priced(name, costs))
            continue
        names = [alias.get(each, each) for each in _NAME.findall(args)]
        if _WAIT in name:
            running.wait(names, line)
            continue
        node = GraphNode("", "call", name, "", (), line)
        if not collective_of(node):
            continue
        written = [target] if target else []
        if name.split(".")[-2].endswith("_") or name.endswith("_"):  # in place
            written += names
        elif "out=" in args:
            written += [alias.get(each, each) for each in _NAME.findall(args.rpartition("out=")[2])]
        running.start(node, f"{name}({args})", written)
    return running


def calls_of_code(text: str, alias: dict[str, str] | None = None) -> Iterator[tuple[int, str, str, str]]:
    """Each call of a kernel in output code: its line, the kernel, the name that takes the result, and the arguments.

    Args:
        alias: Is kept up to date: name → the buffer whose memory it has.
    """
    defined = set(_DEFINED.findall(text))
    alias = {} if alias is None else alias
    quoted = False  # inside of the text of a kernel
    for number, line in enumerate(text.split("\n"), 1):
        quoted ^= len(_QUOTES.findall(line)) % 2 == 1
        if quoted or not line.startswith(" ") or line.lstrip().startswith(("#", "//")):
            continue
        call = _CALL.match(line)
        if call and (
            call["name"] in defined or (call["name"].startswith(_EXTERN) and not call["name"].startswith(_HELPER))
        ):
            target = call["target"] or ""
            alias.pop(target, None)
            yield number, call["name"], target, call["args"]
        elif renamed := _ALIAS.match(line):
            alias[renamed[1]] = alias.get(renamed[2], renamed[2])


Costs = Mapping[str, list[Step]]


def _costs(data: Any) -> Costs:
    """By kernel what each of its calls costs, in their order; of damaged data nothing."""
    by_handle: dict[tuple[str, object], list[Mapping[str, Any]]] = defaultdict(list)
    calls = data.get("calls") if isinstance(data, dict) else None
    for number, call in enumerate(calls if isinstance(calls, list) else ()):
        if isinstance(call, dict) and isinstance(call.get("kernel"), str):
            # The loops of one kernel are reported separately, with one handle.
            handle = call.get("handle")
            by_handle[call["kernel"], -1 - number if handle is None else str(handle)].append(call)
    found: dict[str, list[Step]] = defaultdict(list)
    for (kernel, _), rows in by_handle.items():
        moved = [row.get(key) for row in rows for key in ("reads", "writes")]
        flops = [value for row in rows if isinstance(value := row.get("flops"), int)]
        known = [value for value in moved if isinstance(value, int)]
        found[kernel].append(
            Step(kernel, sum(known) if len(known) == len(moved) else None, sum(flops) if flops else None)
        )
    return found


def _priced(name: str, costs: Costs) -> Step:
    left = costs.get(name)
    return left.pop(0) if left else Step(name)
