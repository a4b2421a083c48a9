"""`irscope graph`: how a graph is folded, its DOT, and what happens around Graphviz."""

from __future__ import annotations

import html
import json
import re
import shutil
import time
from pathlib import Path

import pytest
from facts import a_compile, an_outcome
from irscope.cli.main import main
from irscope.ir.modules import Path as Modules
from irscope.pictures.dot import mixed, quoted, short, to_dot
from irscope.pictures.folding import Box, Frame, fold
from irscope.pictures.graph import PictureGraph, PictureNode, near
from irscope.pictures.outline import to_lines
from irscope.pictures.rendering import RenderingError, render
from irscope.protocol import Lane, StageRef
from irscope.store.store import Store
from irscope.vocabulary.graph_looks import CATEGORIES, FAMILIES, family_of

needs_graphviz = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz's program `dot` is not installed")

TEXT = """\
class <lambda>(torch.nn.Module):
    def forward(self, arg0_1: "f32[5][1]cpu"):
        # File: /home/me/model.py:15 in infer, code: return torch.sin(x) + 1
        sin: "f32[5][1]cpu" = torch.ops.aten.sin.default(arg0_1);  arg0_1 = None
        exp: "f32[5][1]cpu" = torch.ops.aten.exp.default(sin);  sin = None
        add: "f32[5][1]cpu" = torch.ops.aten.add.Tensor(exp, 1);  exp = None
        return (add,)
"""
DATA = {
    "graph": 1, "views": [], "backward": [], "values": [], "symbols": {}, "sources": [],
    "targets": ["arg0_1", "aten.sin.default", "aten.exp.default", "aten.add.Tensor", "output"],
    "frames": [["/home/me/model.py", 15, "infer"]], "stacks": [[0]], "modules": [["L['self'].inner", "Inner"]],
    "nodes": {
        "name": ["arg0_1", "sin", "exp", "add", "output"],
        "op": ["placeholder", "call_function", "call_function", "call_function", "output"],
        "target": [0, 1, 2, 3, 4], "inputs": [[], [0], [1], [2], [3]], "value": [-1] * 5, "flops": [None] * 5,
        "stack": [-1, 0, 0, 0, -1], "module": [-1, 0, 0, -1, -1], "aten": [-1] * 5, "seq": [None] * 5, "from": [[]] * 5,
    },
}  # fmt: skip


def picture_graph(homes: dict[str, str], edges: str, types: dict[Modules, str] | None = None) -> PictureGraph:
    """Nodes with the modules that they are in; ``a>b b>c``.  A name that begins with x is an input."""
    names = list(homes)
    nodes = [
        PictureNode(
            name, name, "f32[2][1]cpu", family_of("placeholder" if name[0] == "x" else "call", name, name),
            tuple(home.split(".")) if home else (), name[0] == "x", "model.py:3",
        )
        for name, home in homes.items()
    ]  # fmt: skip
    pairs = [edge.split(">") for edge in edges.split()]
    return PictureGraph(tuple(nodes), tuple((names.index(a), names.index(b)) for a, b in pairs), types or {})


NET = picture_graph(
    {"x": "", "a": "net.enc.0", "b": "net.enc.0", "c": "net.enc.1", "d": "net.enc.1", "e": "net.head", "out": ""},
    "x>a a>b b>c b>d c>d d>e e>out",
    {("net",): "Net", ("net", "enc", "0"): "Layer"},
)


def shown(graph: PictureGraph, part: Frame | Box) -> str:
    """As text: ``outer(a inner[2])``, where a number in brackets is that of the nodes of a folded module."""
    if isinstance(part, Box):
        return f"{part.name}[{len(part.nodes)}]" if part.is_folded else graph.nodes[part.nodes[0]].name
    inside = " ".join(shown(graph, each) for each in part.parts)
    return f"{part.name}({inside})" if part.name else inside


@pytest.mark.parametrize(
    ("depth", "expected"),
    [
        (0, "x net[5] out"),
        (1, "x net(enc[4] e) out"),
        (2, "x net(enc(0[2] 1[2]) e) out"),
        (3, "x net(enc(0(a b) 1(c d)) e) out"),
        (99, "x net(enc(0(a b) 1(c d)) e) out"),
    ],
)
def test_modules_are_frames_down_to_a_depth(depth: int, expected: str) -> None:
    assert shown(NET, fold(NET, depth).root) == expected


@pytest.mark.parametrize(("most", "expected"), [(3, "x net[5] out"), (5, "x net(enc(0[2] 1[2]) e) out")])
def test_without_a_depth_it_is_unfolded_as_far_as_fits(most: int, expected: str) -> None:
    picture = fold(NET, None, most)
    assert (shown(NET, picture.root), picture.left_out) == (expected, 0)


def test_the_deepest_picture_has_no_larger_depth() -> None:
    assert fold(NET).depth == 3


def test_wires_between_boxes_are_one_with_their_count() -> None:
    picture = fold(NET, 2)
    assert [shown(NET, box) for box in picture.root.boxes()] == ["x", "0[2]", "1[2]", "e", "out"]
    assert picture.wires == {(0, 1): 1, (1, 2): 2, (2, 3): 1, (3, 4): 1}


def test_what_is_too_much_is_left_out_and_the_picture_says_so() -> None:
    """What comes first stays; an input comes with what uses it, however many there are before everything."""
    homes = {**{f"x{number}": "" for number in range(6)}, **{f"op{number}": "" for number in range(6)}}
    graph = picture_graph(homes, " ".join(f"x{number}>op{number} op{number}>op{number + 1}" for number in range(5)))
    picture = fold(graph, None, 4)
    assert shown(graph, picture.root) == "x0 op0 x1 op1"
    assert picture.left_out == 8
    assert picture.wires == {(0, 1): 1, (1, 3): 1, (2, 3): 1, (3, 4): 1}, "4 is the box for what is left out"
    dot = to_dot(graph, picture, "T")
    assert 'b4 [label="… and 8 more nodes"' in dot
    assert "12 nodes; 8 nodes left out (--max-nodes)" in dot


def test_many_inputs_are_one_box() -> None:
    homes = {**{f"x{number}": "" for number in range(13)}, "a": "", "b": ""}
    graph = picture_graph(homes, " ".join(f"x{number}>a" for number in range(13)) + " a>b")
    assert shown(graph, fold(graph, 0).root) == "inputs[13] a b"


def test_chains_of_modules_are_one_frame_and_a_single_node_has_none() -> None:
    graph = picture_graph({"a": "m.layers.0", "b": "m.layers.0", "c": "n.deep.er"}, "a>b b>c")
    assert shown(graph, fold(graph).root) == "m.layers.0(a b) c"


def test_modules_that_are_very_deep() -> None:
    graph = picture_graph({name: ".".join(f"{name}{at}" for at in range(100)) + ".z" for name in "ab"}, "a>b")
    deep = picture_graph({"a": ".".join(["m"] * 100), "b": ".".join(["m"] * 99), "c": "m"}, "a>b b>c")
    assert shown(graph, fold(graph).root) == "a b"
    assert shown(deep, fold(deep).root).startswith("m(")


def test_a_large_graph_takes_no_time_to_fold() -> None:
    """50,000 operations in 1,000 modules."""
    homes = {f"op{at}": f"net.layers.{at // 500}.part{at // 50}" for at in range(50_000)}
    nodes = [PictureNode(name, name, "", None, tuple(home.split(".")), False, "") for name, home in homes.items()]
    graph = PictureGraph(tuple(nodes), tuple((at, at + 1) for at in range(49_999)), {})
    picture = fold(graph)
    boxes = list(picture.root.boxes())
    assert (len(boxes), picture.left_out, len(picture.wires)) == (100, 0, 99)


# --- DOT --------------------------------------------------------------------------------------------------------------

EVIL = [
    '"]; evil [label="',
    "back\\slash\\",
    "\\N\\G",
    "&lt;b&gt;",
    "<b>bold</b>",
    "two\nlines",
    "\x1b[31m\u202egnp.exe\x00",
]


@pytest.mark.parametrize("text", EVIL)
def test_a_quoted_text_ends_where_it_should(text: str) -> None:
    line = quoted(text)
    assert re.fullmatch(r'"(?:[^"\\]|\\.)*"', line)
    assert not re.search(r"[\x00-\x1f\u202e]", line)


@pytest.mark.parametrize("text", [each for each in EVIL if not each.startswith("\x1b")])
def test_quoting_is_that_of_the_graphviz_package(text: str) -> None:
    """But for entities, which Graphviz replaces, and for the ends of lines."""
    graphviz = pytest.importorskip("graphviz", reason="the package `graphviz` is not installed")
    theirs = graphviz.escape(text.replace("&", "&amp;")).replace("\n", "\\n")
    known = graphviz.quoting.quote(graphviz.nohtml(theirs.replace('"', "'")))
    assert quoted(text.replace('"', "'")) == (known if known.startswith('"') else f'"{known}"')


def test_long_names_are_cut_in_their_middle() -> None:
    assert short("a" * 60 + "z" * 60) == "a" * 24 + "…" + "z" * 23
    assert len(quoted("\n".join(["\\" * 10_000] * 2))) < 250


def test_everything_of_a_store_is_quoted() -> None:
    evil = '"</td><x>\\" & \u202e'
    graph = PictureGraph(
        (
            PictureNode(evil, evil, f"f32[2]{evil}", FAMILIES[2], (evil, "a"), False, evil),
            PictureNode("b", "b", "", FAMILIES[2], (evil, "b"), False, ""),
            PictureNode("c", "c", "", FAMILIES[2], (evil, "b"), False, ""),
        ),
        ((0, 1),),
        {(evil,): evil, (evil, "b"): evil},
    )
    for depth in (0, 1, 2):
        dot = to_dot(graph, fold(graph, depth), evil)
        assert "\u202e" not in dot
        strings = re.sub(r'"(?:[^"\\]|\\.)*"', "S", dot.replace(dot[dot.index("<<table") : dot.index("</table>>")], ""))
        assert "</td>" not in strings and "&" not in strings, "all of it is inside of strings"
        head = dot[dot.index("<<table") : dot.index("</table>>")]
        assert "&quot;&lt;/td&gt;&lt;x&gt;\\&quot; &amp; �" in head


def test_colours_are_those_of_the_panel() -> None:
    graph = picture_graph({"x": "", "mm": "", "relu": "", "softmax": ""}, "x>mm mm>relu relu>softmax")
    for theme in ("light", "dark"):
        dot = to_dot(graph, fold(graph), "T", theme)
        colours = re.findall(r'b\d \[.* color="(#\w+)"', dot)
        palette = CATEGORIES[theme]
        assert colours == [palette[6], palette[0], palette[5], palette[2]]
        assert [f">{name}<" in dot for name in ("input", "matmul, convolution", "attention")] == [True, True, False]


def test_a_folded_module_has_the_colours_of_what_is_in_it() -> None:
    graph = picture_graph({"mm": "net", "relu": "net", "tanh": "net"}, "mm>relu relu>tanh")
    dot = to_dot(graph, fold(graph, 0), "T")
    (stripes,) = re.findall(r'style=striped, fillcolor="([^"]+)"', dot)
    assert re.fullmatch(r"#\w{6};0\.3333:#\w{6}", stripes)
    assert 'label="net\\n3 nodes"' in dot
    assert mixed("#000000", "#ff8000", 0.5) == "#804000"


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = str(tmp_path / "runs.db")
    with Store(path) as store:
        run = store.create_run("/home/me/model.py", [], Lane.DEEP, "digest")
        for compile in ("0/0", "0/1"):
            store.put_compile(run, a_compile(id=compile))
            for place, (name, text) in enumerate({"inference-graph": TEXT, "output-code": "x = 1\n"}.items()):
                store.put_stage(run, compile, StageRef(f"{compile}/{name}", name, "python", 0), text, place)
        store.put_stage_data(run, "0/0/inference-graph", DATA)
        store.put_stage(run, "0/1", StageRef("0/1/joint-graph", "joint-graph", "python", 0), "no graph", 7)
        store.set_outcome(run, an_outcome())
    return path


STAGE = ("--stage", "0/0/inference-graph")


def test_dot_goes_to_standard_output(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", "--store", store, *STAGE]) == 0
    dot = capsys.readouterr().out
    assert dot.startswith("digraph irscope {\n") and dot.endswith("}\n")
    assert 'label="self.inner · Inner"' in dot
    assert 'label="sin\\nf32[5]", tooltip="sin f32[5][1]cpu\\nself.inner\\n/home/me/model.py:15"' in dot
    assert len(re.findall(r"b\d -> b\d", dot)) == 4
    assert main(["graph", "--store", store, *STAGE, "--depth", "0", "--theme", "dark"]) == 0
    folded = capsys.readouterr().out
    assert 'label="self.inner\\nInner · 2 nodes"' in folded
    assert "5 nodes; 2 nodes in 1 folded module (--depth 0)" in folded


def test_a_graph_as_text(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    def lines(*arguments: str) -> list[str]:
        assert main(["graph", "--store", store, *STAGE, "--text", *arguments]) == 0
        return capsys.readouterr().out.splitlines()

    assert lines("--depth", "0") == [
        "0/0/inference-graph: 5 nodes; 2 nodes in 1 folded module (--depth 0)",
        "arg0_1 = input f32[5]",
        "[self.inner] Inner, 2 nodes <- arg0_1",
        "add = add f32[5] <- [self.inner]  model.py:15",
        "output = output <- add",
    ]
    assert lines("--node", "sin", "--around", "1") == [
        "0/0/inference-graph: 3 nodes",
        "arg0_1 = input f32[5]",
        "self.inner: Inner",
        "  sin = sin f32[5] <- arg0_1  model.py:15",
        "  exp = exp f32[5] <- sin  model.py:15",
    ]
    data = json.loads("\n".join(lines("--node", "sin", "--around", "0", "--json")))
    assert (data["nodes"], data["dot"], data["format"], len(data["text"].split("\n"))) == (1, None, "text", 1)
    assert main(["graph", "--store", store, *STAGE, "--text", "--node", "sine"]) == 2
    assert "no node sine. Did you mean sin?" in capsys.readouterr().err
    assert main(["graph", "--store", store, *STAGE, "--text", "-o", "x.dot"]) == 2
    assert "leave --output out" in capsys.readouterr().err


def test_text_has_the_edges_of_folded_modules_and_of_what_is_left_out() -> None:
    assert to_lines(NET, fold(NET, 2)) == [
        "x = input f32[2]  model.py:3",
        "net: Net",
        "  net.enc",
        "    [net.enc.0] Layer, 2 nodes <- x",
        "    [net.enc.1] 2 nodes <- [net.enc.0] ×2",
        "  e = e f32[2] <- [net.enc.1]  model.py:3",
        "out = out f32[2] <- e  model.py:3",
    ]
    assert to_lines(NET, fold(NET, 99, 2)) == [
        "x = input f32[2]  model.py:3",
        "net: Net",
        "  net.enc",
        "    net.enc.0: Layer",
        "      a = a f32[2] <- x  model.py:3",
    ]
    assert to_lines(NET, fold(near(NET, "d", 1), 99)) != to_lines(NET, fold(NET, 99))


@pytest.mark.parametrize(("steps", "names"), [(0, "c"), (1, "b c d"), (2, "a b c d e"), (99, "x a b c d e out")])
def test_what_is_near_a_node(steps: int, names: str) -> None:
    part = near(NET, "c", steps)
    assert [node.name for node in part.nodes] == names.split()
    kept = set(names.split())
    edges = [(NET.nodes[a].name, NET.nodes[b].name) for a, b in NET.edges]
    assert [(part.nodes[a].name, part.nodes[b].name) for a, b in part.edges] == [
        edge for edge in edges if set(edge) <= kept
    ]


def test_dot_needs_no_graphviz(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("x.dot", "x.gv", "X.DOT"):
        assert main(["graph", "--store", store, *STAGE, "-o", str(tmp_path / name)]) == 0
        assert (tmp_path / name).read_text("utf-8").startswith("digraph irscope {\n")
        assert f"{name}: 0/0/inference-graph, 5 nodes\n" in capsys.readouterr().out
    assert main(["graph", "--store", store, *STAGE, "-o", str(tmp_path / "x.svg")]) == 3
    error = capsys.readouterr().err
    assert "The program `dot` of Graphviz is missing. Install Graphviz" in error and "-o FILE.dot" in error
    assert not (tmp_path / "x.svg").exists()


def test_the_picture_as_data(store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.dot"
    assert main(["graph", "--store", store, *STAGE, "-o", str(path), "--json", "--max-nodes", "2"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {**data, "run": ""} == {
        "run": "", "stage": "0/0/inference-graph", "file": str(path), "format": "dot", "engine": "", "nodes": 5,
        "boxes": 2, "folded": 1, "left_out": 2, "depth": 0, "dot": None, "text": None,
    }  # fmt: skip
    assert main(["graph", "--store", store, *STAGE, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["file"], data["dot"].split("\n")[0]) == (None, "digraph irscope {")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ["--stage", "inference-graph"],
            2,
            "names several stages. Choose one: 0/0/inference-graph, 0/1/inference-graph",
        ),
        (["--stage", "inference-grph"], 2, "Did you mean inference-graph?"),
        (["--stage", "0/0/output-code"], 2, "0/0/output-code is not a graph. The graphs of run"),
        (["--stage", "0/1/joint-graph"], 2, "0/1/joint-graph cannot be drawn: not a printed FX graph"),
        (["nosuchrun", *STAGE], 2, "nosuchrun"),
        (
            [*STAGE, "-o", "/nowhere/x.dot"],
            3,
            "/nowhere/x.dot cannot be written: No such file or directory. It was not created.",
        ),
    ],
)
def test_what_cannot_be_drawn(
    store: str, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    assert main(["graph", "--store", store, *arguments]) == code
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: --stage"),
        ([*STAGE, "-o", "x.jpg"], "has to end in one of .svg, .pdf, .png, .dot, .gv: 'x.jpg'"),
        ([*STAGE, "-o", "x"], "has to end in"),
        ([*STAGE, "--max-nodes", "0"], "Invalid number of nodes: '0'"),
        ([*STAGE, "--depth", "-1"], "argument --depth"),
        ([*STAGE, "--depth", "1" * 5000], "Invalid number of levels"),
        ([*STAGE, "--max-node", "x", "--them", "light"], "argument --max-nodes"),
        ([*STAGE, "--dept=1", "--tiemout=1"], "Did you mean --timeout?"),
    ],
)
def test_wrong_usage(store: str, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["graph", "--store", store, *arguments])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


# --- Graphviz ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def fake_dot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In place of Graphviz: what it does is a text for a shell, with ``$1`` for the engine and ``$out`` for the file."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "dot"
    program.write_text(f'#!/bin/sh\nfor out; do :; done\n. "{folder}/does"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return folder / "does"


def test_where_dot_is_too_slow_sfdp_lays_it_out(
    fake_dot: Path, store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_dot.write_text('if [ $1 = -Kdot ]; then /bin/sleep 60; fi; read line; echo "$1 $line" > $out')
    path = tmp_path / "x.svg"
    begin = time.monotonic()
    assert main(["graph", "--store", store, *STAGE, "-o", str(path), "--timeout", "2"]) == 0
    assert time.monotonic() - begin < 50
    assert path.read_text() == "-Ksfdp digraph irscope {\n"
    captured = capsys.readouterr()
    assert "`dot` was not ready after 2.0 s, so `sfdp` laid the graph out" in captured.err
    assert "It has 5 boxes" in captured.err


@pytest.mark.parametrize(
    ("does", "message"),
    [
        ("/bin/sleep 60", "Graphviz was not ready after 100 ms with dot or sfdp. Draw less"),
        (r"printf 'syntax \033[31merror\n\n!' >&2; exit 1", "Graphviz failed with exit code 1: syntax �[31merror !."),
        (":", "Graphviz failed with exit code 0: it said nothing."),
    ],
)
def test_where_graphviz_fails_the_error_says_why(fake_dot: Path, does: str, message: str) -> None:
    fake_dot.write_text(does)
    with pytest.raises(RenderingError) as error:
        render("digraph {}", "svg", 0.1 if "sleep" in does else 30)
    assert message in str(error.value)


@needs_graphviz
@pytest.mark.parametrize(("format", "head"), [("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")])
def test_graphviz_renders_every_format(store: str, tmp_path: Path, format: str, head: bytes) -> None:
    path = tmp_path / f"x.{format}"
    assert main(["graph", "--store", store, *STAGE, "-o", str(path)]) == 0
    assert path.read_bytes().startswith(head)


@needs_graphviz
@pytest.mark.parametrize("text", EVIL)
def test_graphviz_shows_names_as_they_are(text: str) -> None:
    graph = PictureGraph((PictureNode(text, text, "", None, (text, "m"), False, text),) * 2, (), {(text,): text})
    for depth in (0, 1):
        picture, engine = render(to_dot(graph, fold(graph, depth), text), "svg", 60)
        assert engine == "dot"
        assert "evil" not in re.findall(r"<title>(.*?)</title>", picture.decode())
        lines = [html.unescape(found) for found in re.findall(r"<text[^>]*>([^<]*)</text>", picture.decode())]
        first = re.sub(r"[\x00-\x1f\u202e]", "�", text.split("\n")[0])
        assert any(first in line for line in lines), lines
