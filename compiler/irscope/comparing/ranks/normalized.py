"""A graph without what differs between the ranks of any job: names of nodes and of process groups, numbers of devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from irscope.comparing.ranks.words import words_of_nodes
from irscope.ir.graphs import GraphNode, parse_graph
from irscope.ir.nodes import facts_of
from irscope.protocol import Origin
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.patterns import pattern
from irscope.vocabulary.records import dataclass

_WORD = pattern(r"(?<![\w.'])[A-Za-z_]\w*")
_DEVICES = (
    pattern(r"\b(cuda|xpu|hip):\d+"),
    pattern(r"\b(device\(type='\w+'), index=\d+"),
    pattern(r"\b(device|device_index) ?= ?\d+\b"),
    pattern(r"(\.(?:to|cuda|xpu)\()\d+\b"),
    pattern(
        r"\b(torch\.(?:cuda|xpu|accelerator|_C)\.[\w.]*"
        r"(?:set_device(?:_index)?|exchange_device|[sS]tream|RawStream|synchronize|get_device_\w+|mem_get_info)\()\d+\b"
    ),
)
"""Where PyTorch prints the index of a rank's device: what is kept is the group.  Seeds and other numbers stay."""
_TEXT = pattern(r"'([^']*)'")
_NUMBER = pattern(r"(?<![\w.$])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)")
_OPERATION = "#"
"""Stands for a number in what is the same for all ranks but for numbers."""
_REDUCTIONS = ("sum", "avg", "product", "min", "max", "band", "bor", "bxor", "premul_sum")
_COLLECTIVE = pattern(r"\b(?:_?c10d_functional|_c10d_functional_autograd|c10d|symm_mem)\.(\w+)")
_NOT_SENT = ("wait_tensor", "barrier")


@dataclass(frozen=True)
class RankNode:
    """A node as all ranks have it.

    Args:
        node: As it is in the graph.
        operation: What is called.
        value: The statement's right side, with inputs as their numbers and groups in the order of their first use.
        shape: The same with every number replaced: what is left differs in more than constants.
        said: The statement's right side as people are told: with the names of arguments.
        detail: Dtype, shape, strides and device; the device without its number.
        origin: The innermost line of the user's that led to it; None if that is not known.
    """

    node: GraphNode
    operation: str
    value: str
    shape: str
    said: str
    detail: str
    origin: Origin | None = None

    @property
    def collective(self) -> str:
        """The collective, as ``all_reduce``; empty if it is not a collective."""
        return collective_of(self.node)


def collective_of(node: GraphNode) -> str:
    """The collective that a node starts, as ``all_reduce``; empty if it starts none."""
    match = _COLLECTIVE.search(node.target) if node.op == "call" else None
    return match[1].rstrip("_") if match and match[1].rstrip("_") not in _NOT_SENT else ""


def group_of(text: str, node: GraphNode) -> str:
    """The name of the process group of a collective; empty if its statement does not have one."""
    names = [name for name in _TEXT.findall(right_side(text.split("\n"), node)) if name.lower() not in _REDUCTIONS]
    return names[-1] if names else ""


def reduction_of(text: str, node: GraphNode) -> str:
    """How a collective reduces: ``sum``; empty if it does not."""
    names = [name for name in _TEXT.findall(right_side(text.split("\n"), node)) if name.lower() in _REDUCTIONS]
    return names[0] if names else ""


def normalized(text: str, data: Any = None) -> list[RankNode]:
    """The nodes of a printed graph.  Raises ValueError for any other text.

    Args:
        data: What is kept of its stage beside the text (`irscope.ir.nodes`): the text names the innermost line alone,
            which may be a library's.
    """
    lines, groups = text.split("\n"), dict[str, str]()
    nodes, origins = parse_graph(text).nodes, _origins(data)
    numbers = {node.name: f"${number}" for number, node in enumerate(nodes)}
    words = words_of_nodes(nodes)
    made = [_normalized(node, lines, (numbers, words), groups) for node in nodes]
    return [replace(one, origin=_own_line(one.node) or origins.get(one.node.name)) for one in made]


def _own_line(node: GraphNode) -> Origin | None:
    return node.origin if node.origin is not None and is_user_file(node.origin.file) else None


def _origins(data: Any) -> dict[str, Origin]:
    """For nodes whose stack has a line of the user's: the innermost line."""
    found = {}
    for facts in facts_of(data):
        mine = next((frame for frame in reversed(facts.stack) if is_user_file(frame.file)), None)
        if mine is not None:
            found[facts.name] = Origin(mine.file, mine.line)
    return found


def _normalized(
    node: GraphNode, lines: list[str], names: tuple[Mapping[str, str], Mapping[str, str]], groups: dict[str, str]
) -> RankNode:
    detail = _without_device(node.detail)
    if node.op == "placeholder":  # its name is that of a variable, or of a number in a list
        return RankNode(node, node.op, "", "", "", detail)
    if node.op == "output":
        value, said = (", ".join(each.get(name, "") for name in node.inputs) for each in names)
        return RankNode(node, node.op, value, value, said, detail)
    right = right_side(lines, node)
    value, said = (_renamed(right, node, each, groups) for each in names)
    return RankNode(node, node.target, value, _NUMBER.sub(_OPERATION, value), said, detail)


def _renamed(right: str, node: GraphNode, names: Mapping[str, str], groups: dict[str, str]) -> str:
    """The right side of a statement with other names for its inputs, and without the numbers of devices."""
    mine = {name: names[name] for each in node.inputs for name in (each, each.lower()) if name in names}
    value = _without_device(_WORD.sub(lambda match: mine.get(match[0], match[0]), right))
    if not _COLLECTIVE.search(node.target):
        return value
    return _TEXT.sub(lambda match: _same_group(match[0], match[1], groups), value)


def _without_device(text: str) -> str:
    """A text without the index of the rank's device, which no rank has in common with another one of its machine."""
    for device in _DEVICES:
        text = device.sub(r"\1", text)
    return text


def _same_group(quoted: str, name: str, groups: dict[str, str]) -> str:
    return quoted if name.lower() in _REDUCTIONS else groups.setdefault(name, f"group {len(groups)}")


def right_side(lines: list[str], node: GraphNode) -> str:
    """What is computed, in the words of the graph's text."""
    line = lines[node.line - 1] if 0 < node.line <= len(lines) else ""
    value = line.partition(" = ")[2] if " = " in line else line.strip()
    return value.split(";  ", 1)[0].split("  #", 1)[0].strip()


def numbers_in(value: str) -> list[str]:
    """The constants of a right side, in order."""
    return _NUMBER.findall(value)
