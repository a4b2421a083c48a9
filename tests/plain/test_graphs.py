"""Every node, input and origin of printed graphs that torch 2.13 wrote (a matmul, a relu and a sum, with backward).

Beside each `graphs/NAME.txt` stands `NAME.expected`, one node a line; ``UPDATE_EXPECT=1`` writes it anew.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from irscope.graphs import GraphNode, parse_graph

GRAPHS = Path(__file__).parent / "graphs"
NAMES = sorted(path.stem for path in GRAPHS.glob("*.txt"))


def described(node: GraphNode) -> str:
    origin = f"{node.origin.file}:{node.origin.line} {node.code}" if node.origin else "-"
    return f"{node.line} {node.name} | {node.op} | {node.target} | {node.detail} | {' '.join(node.inputs)} | {origin}"


@pytest.mark.parametrize("name", NAMES)
def test_every_node(name: str) -> None:
    lines = [described(node) for node in parse_graph((GRAPHS / f"{name}.txt").read_text()).nodes]
    expected = GRAPHS / f"{name}.expected"
    if os.environ.get("UPDATE_EXPECT"):
        expected.write_text("\n".join(lines) + "\n")
    assert lines == expected.read_text().splitlines()


@pytest.mark.parametrize("name", NAMES)
def test_no_statement_is_lost(name: str) -> None:
    """Independent of the parser: each `name: "dtype[…]…" =` and each argument of the text is a node, at its line."""
    text = (GRAPHS / f"{name}.txt").read_text()
    nodes = {node.name: node for node in parse_graph(text).nodes}
    for number, line in enumerate(text.split("\n"), 1):
        for declared in re.findall(r'(\w+): "', line):
            assert nodes[declared].line == number
            assert nodes[declared].detail in line
    assert len(nodes) == len(set(re.findall(r'(\w+): "', text))) + 1  # the output


def test_a_leading_blank_line_moves_no_line_number() -> None:
    text = (GRAPHS / "forward.txt").read_text()
    plain, moved = parse_graph(text), parse_graph("\n\n" + text)
    assert [node.line + 2 for node in plain.nodes] == [node.line for node in moved.nodes]
    assert [node.origin for node in plain.nodes] == [node.origin for node in moved.nodes]


@pytest.mark.parametrize("text", ["", "def f(): pass", "class A: x = 1", "hello world", "class A(", "(" * 5000, "a\0b"])
def test_what_is_no_graph(text: str) -> None:
    with pytest.raises(ValueError, match="not a printed FX graph"):
        parse_graph(text)


@pytest.mark.parametrize(
    ("statement", "target", "inputs"),
    [
        ("y = x @ w", "operator.matmul", ("x", "w")),
        ("y = -x", "operator.neg", ("x",)),
        ("y = x < w", "operator.lt", ("x", "w")),
        ("y = x[0]", "operator.getitem", ("x",)),
        ("y = x.sum(dim = w)", "sum", ("x", "w")),
        ("y = torch._C._nn.linear(x, w)", "torch._C._nn.linear", ("x", "w")),
        ("y = torch.ops.aten.add.Tensor(x, x)", "torch.ops.aten.add.Tensor", ("x",)),
        ("y = torch.cat((x, w), dim = 0);  x = None", "torch.cat", ("x", "w")),
        ("y = self.layer.weight", "layer.weight", ()),
        ("y = math.sqrt(x)", "math.sqrt", ("x",)),
    ],
)
def test_what_a_statement_calls(statement: str, target: str, inputs: tuple[str, ...]) -> None:
    graph = parse_graph(f"class G:\n    def forward(self, x, w):\n        {statement}\n        return (y,)\n")
    (node,) = [node for node in graph.nodes if node.name == "y"]
    assert (node.target, node.inputs) == (target, inputs)
    assert graph.nodes[-1].inputs == ("y",)


def test_an_origin_holds_only_below_its_comment() -> None:
    graph = parse_graph(
        "class G:\n    def forward(self, x):\n        a = x + 1\n        # File: C:\\my files\\m.py:7 in <lambda>, code: x: y, code: z\n"
        "        b = a + 1\n        return (b,)\n"
    )
    origins = {node.name: (node.origin and (node.origin.file, node.origin.line), node.code) for node in graph.nodes}
    assert origins["a"] == (None, "")
    assert origins["b"] == (("C:\\my files\\m.py", 7), "x: y, code: z")
    assert origins["output"] == (None, "")
