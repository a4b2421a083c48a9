"""Every node, input and origin of printed graphs that torch 2.13 wrote (a matmul, a relu and a sum, with backward).

Beside each `graphs/NAME.txt` stands `NAME.expected`, one node a line; ``UPDATE_EXPECT=1`` writes it anew.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from irscope.comparing.graphs import diff_graphs
from irscope.ir import graph_statements, graphs
from irscope.ir.graphs import GraphNode, inner_nodes, parse_graph, read_nodes
from irscope.ir.nodes import lines_of
from irscope.protocol import Origin

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
        ("y = getattr(self.layers, '0').weight", "layers.0.weight", ()),
        ("y = getattr(x, 'T')", "getattr", ("x",)),
        ("y = math.sqrt(x)", "math.sqrt", ("x",)),
    ],
)
def test_what_a_statement_calls(statement: str, target: str, inputs: tuple[str, ...]) -> None:
    graph = parse_graph(f"class G:\n    def forward(self, x, w):\n        {statement}\n        return (y,)\n")
    (node,) = [node for node in graph.nodes if node.name == "y"]
    assert (node.target, node.inputs) == (target, inputs)
    assert graph.nodes[-1].inputs == ("y",)


@pytest.mark.parametrize(
    ("statement", "target"),
    [
        ("self.first.weight", "first.weight"),
        ('getattr(self.layer, "0").query.bias', "layer.0.query.bias"),
        ('getattr(getattr(self, "0").blocks, "1")', "0.blocks.1"),
    ],
)
def test_an_attribute_of_a_module_in_a_list(statement: str, target: str) -> None:
    text = (
        f"class GraphModule(torch.nn.Module):\n    def forward(self):\n        w = {statement}\n        return (w,)\n"
    )
    [node, _] = parse_graph(text).nodes
    assert (node.op, node.target, node.inputs) == ("get_attr", target, ())


def test_an_origin_holds_only_below_its_comment() -> None:
    graph = parse_graph(
        "class G:\n    def forward(self, x):\n        a = x + 1\n        # File: C:\\my files\\m.py:7 in <lambda>, code: x: y, code: z\n"
        "        b = a + 1\n        return (b,)\n"
    )
    origins = {node.name: (node.origin and (node.origin.file, node.origin.line), node.code) for node in graph.nodes}
    assert origins["a"] == (None, "")
    assert origins["b"] == (("C:\\my files\\m.py", 7), "x: y, code: z")
    assert origins["output"] == (None, "")


def test_reading_by_lines_gives_what_the_syntax_tree_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly every printed graph is read line by line; each must come out as if its whole text were parsed."""
    texts = [*((GRAPHS / f"{name}.txt").read_text() for name in NAMES), _IRREGULAR]
    quick = [graphs._read_by_lines(text) for text in texts]
    monkeypatch.setattr(graphs, "_read_by_lines", lambda text: None)
    whole = [parse_graph(text).nodes for text in texts]
    assert quick == whole


def test_a_statement_of_several_lines_is_left_to_the_syntax_tree() -> None:
    text = _IRREGULAR.replace("sin(a);", "sin(\n            a);")
    assert graphs._read_by_lines(text) is None
    assert [node.inputs for node in parse_graph(text).nodes][2] == ("a",)


_IRREGULAR = """\
class GraphModule(torch.nn.Module):
    def forward(self, a: "f32[s0][1]cpu", s0: "Sym(s0)"):
        # File: m.py:3 in f, code: b = torch.sin(a)  # "quoted"
        b: "f32[s0][1]cpu" = torch.sin(a);  a = None
        c = torch.ops.aten.clamp.default(b, min = -1, max = s0);  b = None
        d: "f32[s0][1]cpu" = torch.functional.einsum('a,b->ab', c, c)

        # File: m.py:4 in f, code: return (d + 1).sum()
        e: "f32[s0][1]cpu" = (d + 1).sum();  d = None
        f: "f32[s0][1]cpu" = torch.cat([c, e], dim = 0)[slice(None, s0, None)];  c = e = None
        g = self.weight
        torch._check(s0 > 1)
        h: "Sym(s0 + 1)" = s0 + 1
        return (f, g,
                h)
"""


def test_nodes_without_a_stack_do_not_get_the_line_of_those_before() -> None:
    text = """\
class GraphModule(torch.nn.Module):
    def forward(self, arg0_1: "f32[4]"):
        # File: /s.py:5 in f, code: y = x.relu()
        relu: "f32[4]" = torch.ops.aten.relu.default(arg0_1);  arg0_1 = None

        # No stacktrace found for following nodes
        div_tensor: "f32[4]" = torch.ops.aten.div.Tensor(relu, 8.0);  relu = None

        # File: /s.py:6 in f, code: return y.exp()
        exp: "f32[4]" = torch.ops.aten.exp.default(div_tensor);  div_tensor = None
        return (exp,)
"""
    origins = {node.name: node.origin and node.origin.line for node in parse_graph(text).nodes}
    assert origins == {"arg0_1": None, "relu": 5, "div_tensor": None, "exp": 6, "output": None}


# What `CodeGen` of torch.fx writes between "#" and "File:", which nests: annotation, checkpointing, then 2.15's words.
HEADS = [
    "",
    "Annotation: {'stage': 'File: 0'} ",
    "ac_graph_id: 1 - PREFER_RECOMPUTE ",
    "recompute: MUST_SAVE Backward of forward node: ",
]


@pytest.mark.parametrize("head", HEADS, ids=["2.13", "annotation", "checkpoint", "2.15"])
def test_the_line_behind_other_words(head: str) -> None:
    text = f"""\
class GraphModule(torch.nn.Module):
    def forward(self, arg0_1: "f32[4]"):
        # File: /s.py:5 in f, code: y = x.relu()
        relu: "f32[4]" = torch.ops.aten.relu.default(arg0_1);  arg0_1 = None

        # {head}File: /s: in t.py:7 in g, code: z = y.exp()  # File: /t.py:8 in h, code: no
        exp: "f32[4]" = torch.ops.aten.exp.default(relu);  relu = None

        # {head.partition("Backward")[0]}No stacktrace found for following nodes
        neg: "f32[4]" = torch.ops.aten.neg.default(exp);  exp = None
        return (neg,)
"""
    relu, exp, neg = parse_graph(text).nodes[1:4]
    assert relu.origin == Origin("/s.py", 5)
    assert (exp.origin, exp.code) == (Origin("/s: in t.py", 7), "z = y.exp()  # File: /t.py:8 in h, code: no")
    assert neg.origin is None
    (head_of,) = re.findall(f"^{graph_statements.ORIGIN_HEAD}(?=g)", text, re.MULTILINE)
    assert head_of == ("/s: in t.py", "7")


def test_an_empty_comment_is_a_node_without_a_line() -> None:
    """As torch 2.9 writes it where a stack trace has no frame."""
    text = """\
class GraphModule(torch.nn.Module):
    def forward(self, arg0_1: "f32[4]"):
         # File: /s.py:5 in f, code: y = x.relu()
        relu: "f32[4]" = torch.ops.aten.relu.default(arg0_1);  arg0_1 = None

         #
        neg: "f32[4]" = torch.ops.aten.neg.default(relu);  relu = None
        return (neg,)
"""
    assert [node.origin and node.origin.line for node in parse_graph(text).nodes] == [None, 5, None, None]


@pytest.mark.parametrize("name", NAMES)
def test_single_nodes_are_read_as_in_the_whole(name: str) -> None:
    text = (GRAPHS / f"{name}.txt").read_text()
    whole = parse_graph(text).nodes
    names = [node.name for node in whole]
    for node in whole:
        assert read_nodes(text, {node.name: node.line}, names) == (node,)
    calls = [node for node in whole if node.op == "call"]
    assert read_nodes(text, {node.name: node.line for node in whole}, names, most=1)[0] in calls


IN_PLACE = """\
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[4]"):
        l_x_ = L_x_

        # File: /home/me/model.py:3 in f, code: h = x * 2
        h: "f32[4]" = l_x_ * 2

        # File: /home/me/model.py:4 in f, code: h += x
        h += l_x_;  h_1: "f32[4]" = h;  h = l_x_ = None

        # File: /home/me/model.py:5 in f, code: h[0] = 1
        h_1[0] = 1;  setitem = h_1;  setitem = None
        return (h_1,)
"""


@pytest.mark.parametrize(
    "text", [IN_PLACE, IN_PLACE.replace("        l_x_ = L_x_\n", "        l_x_ = L_x_\n\n        '''\n        '''\n")]
)
def test_a_node_that_is_printed_as_two_statements(text: str) -> None:
    nodes = {node.name: node for node in parse_graph(text).nodes}
    assert [(nodes[name].target, nodes[name].inputs, nodes[name].origin) for name in ("h_1", "setitem")] == [
        ("operator.iadd", ("h", "L_x_"), Origin("/home/me/model.py", 4)),
        ("operator.setitem", ("h_1",), Origin("/home/me/model.py", 5)),
    ]
    assert nodes["h_1"].detail == "f32[4]" and nodes["output"].inputs == ("h_1",)
    for node in nodes.values():
        assert read_nodes(text, {node.name: node.line}, nodes) == (node,)


def test_an_input_that_is_declared_in_another_way_is_left_to_the_syntax_tree() -> None:
    text = "class M(torch.nn.Module):\n    def forward(self, x : torch.Tensor):\n        y = torch.sin(x)\n        return y\n"
    (whole,) = (node for node in parse_graph(text).nodes if node.name == "x")
    assert read_nodes(text, {"x": 2}, ["x", "y", "output"]) == (whole,)


OUTPUT = """\
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[4][1]cpu"):
        l_x_ = L_x_

        output: "f32[][]cpu" = l_x_.sum();  l_x_ = None
        last: "f32[][]cpu" = output * 2;  output = None
        return (last,)
"""


@pytest.mark.parametrize("text", [OUTPUT, OUTPUT.replace(".sum()", ".sum(\n    )")], ids=["by lines", "as a whole"])
def test_a_variable_that_is_called_output_is_a_node(text: str) -> None:
    nodes = {node.name: node for node in parse_graph(text).nodes}
    assert [(name, node.op, node.inputs) for name, node in nodes.items()] == [
        ("L_x_", "placeholder", ()), ("output", "call", ("L_x_",)), ("last", "call", ("output",)),
        ("output_1", "output", ("last",)),
    ]  # fmt: skip
    assert diff_graphs(text, text).same
    assert {name: node.line for name, node in nodes.items()}.items() <= lines_of(text).items()


COND = """\
class <lambda>(torch.nn.Module):
    def forward(self, arg0_1: "f32[8][1]cpu"):
        # File: /w/a.py:15 in c, code: return torch.cond(x.sum() > 0, t, e, (x,))
        sum_1: "f32[][]cpu" = torch.ops.aten.sum.default(arg0_1)
        true_graph_0 = self.true_graph_0
        cond = torch.ops.higher_order.cond(sum_1, true_graph_0, (arg0_1,))
        return (cond,)

    class true_graph_0(torch.nn.Module):
        def forward(self, arg0_1: "f32[8][1]cpu"):
            # File: /w/a.py:6 in t, code: y = x.sin()
            sin: "f32[8][1]cpu" = torch.ops.aten.sin.default(arg0_1)
            inner_0 = self.inner_0
            return (sin,)

        class inner_0(torch.nn.Module):
            def forward(self, arg0_1: "f32[8][1]cpu"):
                # File: /w/a.py:3 in s, code: return x.cos()
                cos: "f32[8][1]cpu" = torch.ops.aten.cos.default(arg0_1)
                return (cos,)
"""


def test_nodes_of_the_graphs_below() -> None:
    calls = [node for node in inner_nodes(COND) if node.op == "call"]
    assert [(node.name, node.line, node.origin) for node in calls] == [
        ("true_graph_0.sin", 12, Origin("/w/a.py", 6)),
        ("true_graph_0.inner_0.cos", 19, Origin("/w/a.py", 3)),
    ]
    assert calls[0].detail == "f32[8][1]cpu" and inner_nodes((GRAPHS / "forward.txt").read_text()) == ()
    assert [node.name for node in parse_graph(COND).nodes] == ["arg0_1", "sum_1", "true_graph_0", "cond", "output"]
