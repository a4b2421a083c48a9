"""A graph as DOT: what the client's style sheet and its clicks rely on."""

from __future__ import annotations

from irscope.graphs import Graph, GraphNode, parse_graph
from irscope.protocol import Origin
from irscope_server.graph_dot import dot_of, graph_result
from made import GRAPH


def test_a_printed_graph() -> None:
    result = graph_result(
        "T",
        parse_graph(GRAPH.format(script="/w/a.py")),
        "r",
        "0/0/dynamo-graph",
        "python",
        lambda path: f"file://{path}",
    )
    assert [(node.id, node.name, node.op) for node in result.nodes] == [
        ("n0", "L_x_", "placeholder"),
        ("n1", "y", "torch.relu"),
        ("n2", "sin", "sin"),
        ("n3", "add", "operator.add"),
        ("n4", "output", "output"),
    ]
    relu = result.nodes[1]
    assert relu.detail == "f32[4, 8][8, 1]cpu"
    assert relu.origin and (relu.origin.uri, relu.origin.line) == ("file:///w/a.py", 4)
    assert relu.stage_uri == "irscope:/r/0/0/dynamo-graph.py" and relu.stage_line == 5
    assert 'n1 [label="torch.relu\\nf32[4, 8]" class="call dtype-f32 family-torch" id=n1' in result.dot
    assert "n0 -> n1" in result.dot and "n3 -> n4" in result.dot


def test_no_colour_is_fixed() -> None:
    dot = dot_of(parse_graph(GRAPH.format(script="/w/a.py")), "T")
    assert "color" not in dot and "fill" not in dot


HOSTILE = GraphNode(
    'x"];evil[', "call", '<b onclick="x">\\n"quoted"\\', "f32[2]", (), 1, Origin("/w/a.py", 1), "</title><script>"
)


def test_foreign_text_stays_text() -> None:
    """In DOT a label in angle brackets would be HTML, a backslash an escape, a quote the end."""
    dot = dot_of(Graph((HOSTILE,)), "<i>t</i>")
    assert "label=<" not in dot and "tooltip=<" not in dot
    assert "id=n0" in dot and "evil[ =" in dot
    assert dot.count(r"\\n\"quoted\"\\") == 2  # in the label and in the tooltip


def test_an_input_that_is_no_node_is_left_out() -> None:
    dot = dot_of(Graph((GraphNode("a", "call", "f", "", ("gone",), 1),)), "T")
    assert "->" not in dot
