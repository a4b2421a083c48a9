"""What stands in the source: inlay hints, regions, hovers on lines, and what a lens counted before an edit."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from irscope.protocol import CompileOutcome, to_json
from irscope.protocol.symbols import symbols_in
from irscope_server.base.texts import file_key
from irscope_server.language.line_facts import (
    CompileTexts,
    Op,
    facts_of_texts,
    layout_text,
    short_target,
    type_text,
)
from irscope_server.language.statements import Statement, statement_of_line
from irscope_server.language.type_labels import value_label
from lsp_editor import Editor, StartEditor
from lsprotocol import types
from made import compile_of, finding, kernel, stage

Play = Callable[..., Path]

SCRIPT = """\
import torch

def inner(x):
    return torch.relu(x)

@torch.compile
def f(x, scale):
    h = inner(
        x) * scale
    print("hi"); a, b = h.chunk(2)
    return a.sin(), b

def left(x):
    return x

f(torch.ones(4, 8), 2)
"""
GRAPH = """\
class GraphModule(torch.nn.Module):
    def forward(self, s77: "Sym(s77)", L_x_: "f32[s77, 8][8, 1]cpu"):
        l_x_ = L_x_

         # File: {file}:4 in inner, code: return torch.relu(x)
        relu: "f32[s77, 8][8, 1]cpu" = torch.relu(l_x_);  l_x_ = None

         # File: {file}:8 in f, code: h = inner(
        h: "f32[s77, 8][8, 1]cpu" = relu * 2;  relu = None
        return (h,)
"""
RESUMED = """\
class GraphModule(torch.nn.Module):
    def forward(self, L_h_: "f32[4, 8][8, 1]cuda:0"):
        l_h_ = L_h_

         # File: {file}:10 in torch_dynamo_resume_in_f_at_10, code: print("hi"); a, b = h.chunk(2)
        chunk = l_h_.chunk(2);  l_h_ = None
        a: "f32[2, 8][8, 1]cuda:0" = chunk[0]
        b: "f32[2, 8][8, 1]cuda:0" = chunk[1];  chunk = None

         # File: {file}:11 in torch_dynamo_resume_in_f_at_10, code: return a.sin(), b
        sin: "f32[2, 8][8, 1]cuda:0" = a.sin();  a = None
        return (sin, b)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def act(script: Path, breaks: int = 1) -> dict[str, Any]:
    file = str(script)
    graph = [to_json(stage("0/0", "dynamo-graph")), GRAPH.format(file=file)]
    resumed = [to_json(stage("1/0", "dynamo-graph")), RESUMED.format(file=file)]
    return {
        "findings": [to_json(finding(file, 10, 4 + at, 15)) for at in range(breaks)],
        "compiles": [
            [to_json(compile_of(file, "0/0", "f", 6)), [graph]],
            [to_json(compile_of(file, "1/0", "torch_dynamo_resume_in_f_at_10", 10)), [resumed]],
            [to_json(compile_of(file, "2/0", "left", 13, outcome=CompileOutcome.SKIPPED, graph_ops=0)), []],
        ],
        "kernels": [to_json(kernel("k0", "0/0", (file, 4), (file, 8))), to_json(kernel("k1", "1/0", (file, 11)))],
    }


async def hints(editor: Editor, uri: str) -> list[tuple[int, int, str]]:
    everywhere = types.Range(types.Position(0, 0), types.Position(99, 0))
    params = types.InlayHintParams(types.TextDocumentIdentifier(uri), everywhere)
    found = await editor.client.text_document_inlay_hint_async(params) or ()
    return sorted((hint.position.line, hint.position.character, str(hint.label)) for hint in found)


async def regions(editor: Editor, uri: str) -> list[tuple[str, int, int]]:
    found = await editor.request("irscope/regions", uri=uri)
    return [(region.kind, region.line, region.endLine) for region in found.regions]


async def shown(start_editor: StartEditor, script: Path, **settings: Any) -> tuple[Editor, str]:
    editor = await start_editor(playing=True, settings={"run": {"onSave": "deep"}, **settings})
    uri = editor.open(script)
    await editor.until_ended()
    return editor, uri


async def test_hints_are_off_unless_they_are_asked_for(start_editor: StartEditor, play: Play, script: Path) -> None:
    play(act(script))
    editor, uri = await shown(start_editor, script)
    assert await hints(editor, uri) == []


async def test_hints_stand_at_the_end_of_statements_and_behind_parameters(
    start_editor: StartEditor, play: Play, script: Path
) -> None:
    play(act(script))
    editor, uri = await shown(start_editor, script, inlayHints={"enabled": True})
    assert await hints(editor, uri) == [
        (3, 24, "f32[s77, 8]"),
        (6, 7, ": f32[s77, 8]"),
        (8, 18, "f32[s77, 8]"),
        (9, 34, "(f32[2, 8] cuda:0, f32[2, 8] cuda:0)"),
    ]  # of `return a.sin(), b` only one of two values was made there: it has none


async def test_hints_and_regions_move_with_edits_and_leave_what_was_edited(
    start_editor: StartEditor, play: Play, script: Path
) -> None:
    play(act(script))
    editor, uri = await shown(start_editor, script, inlayHints={"enabled": True})
    assert await regions(editor, uri) == [
        ("compiled", 2, 3), ("kernel", 3, 3), ("compiled", 5, 10), ("kernel", 7, 7), ("broken", 9, 9),
        ("kernel", 10, 10), ("skipped", 12, 13),
    ]  # fmt: skip
    editor.change(uri, "# a line\n" + SCRIPT.replace("return torch.relu(x)", "return torch.relu(x + 1)"))
    await editor.until(lambda: editor.file_state(uri).state == "stale")
    assert [line for line, _, _ in await hints(editor, uri)] == [7, 9, 10], "not in the function that was edited"
    assert await regions(editor, uri) == [
        ("compiled", 3, 4), ("compiled", 6, 11), ("kernel", 8, 8), ("broken", 10, 10), ("kernel", 11, 11),
        ("skipped", 13, 14),
    ]  # fmt: skip
    editor.change(uri, SCRIPT.replace("    print", "    scale = 3\n    print"), version=3)
    assert await hints(editor, uri) == [(3, 24, "f32[s77, 8]")], "in no line of the function that was edited"
    editor.change(uri, SCRIPT.replace("def left(x)", "def right(x)"), version=4)
    await editor.until(lambda: editor.file_state(uri).state == "stale")
    assert "skipped" not in {kind for kind, _, _ in await regions(editor, uri)}


async def test_a_hover_on_a_line_says_what_became_of_it(start_editor: StartEditor, play: Play, script: Path) -> None:
    play(act(script))
    editor, uri = await shown(start_editor, script)
    await regions(editor, uri)
    said = await editor.hover(uri, 7, 10)
    assert re.fullmatch(
        r"`mul` · gives `f32\[s77, 8\]`\n\nIn 1 kernel: \[`k0`\]\(irscope:/[^/]+/0/0/kernel/k0\.cpp\)", said
    ), said
    assert await editor.hover(uri, 0, 3) == "" and await editor.hover(uri, 13, 8) == ""


async def test_a_lens_says_what_it_counted_before_the_last_edit(
    start_editor: StartEditor, play: Play, script: Path
) -> None:
    play(act(script, breaks=3), act(script, breaks=1), act(script, breaks=1))
    editor, uri = await shown(start_editor, script)
    assert (await editor.lenses(uri))[1][1].startswith("2 graphs · 3 breaks · ")
    editor.change(uri, SCRIPT + "# more\n")
    editor.save(uri)
    await editor.until_ended(2)
    assert (await editor.lenses(uri))[1][1].startswith("2 graphs · 1 break (was 3) · ")
    editor.save(uri)
    await editor.until_ended(3)
    assert (await editor.lenses(uri))[1][1].startswith("2 graphs · 1 break (was 3) · "), "until the next edit"


HEADS = """\
import torch

class Head:
    def forward(self, x):
        return pooled(x)

def pooled(x):
    return x

def unused(x):
    return (lambda y: y)(x)
"""


async def test_functions_that_only_call_others_are_compiled_too(
    start_editor: StartEditor, play: Play, script: Path
) -> None:
    """No graph has a line of them; the file was not open when it ran, and is edited later."""
    heads = script.with_name("heads.py")
    heads.write_text(HEADS)
    of_run = act(script)
    walked = [
        [str(heads), 7, "pooled"],
        [str(heads), 4, "forward"],
        [str(heads), 11, "<lambda>"],
        [str(script), 3, "inner"],
    ]
    walk = [to_json(stage("0/0", "modified-bytecode", "python-bytecode")), "", {"functions": walked}]
    of_run["compiles"][0][1].append(walk)
    play({**of_run, "sources": {str(heads): HEADS}})
    editor, uri = await shown(start_editor, script)
    assert ("compiled", 2, 3) in await regions(editor, uri)
    other = editor.open(heads)
    assert await regions(editor, other) == [("compiled", 3, 4), ("compiled", 6, 7)]
    editor.change(other, "# a line\n" + HEADS.replace("def pooled(x)", "def pooled(y)"))
    found = await editor.request("irscope/regions", uri=other)
    assert [(each.kind, each.line, each.endLine) for each in found.regions] == [("compiled", 4, 5)]
    assert found.stale and found.regions[0].text == "Compiled, in compile 0/0"


async def test_a_function_that_was_compiled_is_not_skipped(start_editor: StartEditor, play: Play, script: Path) -> None:
    """Compiled for one call, given up for another: it does not run as plain Python."""
    of_run = act(script)
    again = compile_of(str(script), "0/1", "f", 6, outcome=CompileOutcome.SKIPPED, graph_ops=0)
    of_run["compiles"].append([to_json(again), []])
    play(of_run)
    editor, uri = await shown(start_editor, script)
    found = [kind for kind, line, _ in await regions(editor, uri) if line == 5]
    assert "compiled" in found and "skipped" not in found


# --- the parts --------------------------------------------------------------------------------------------------------


def op(name: str, detail: str, *inputs: str, compile: str = "0/0", number: int = 0) -> Op:
    return Op(compile, name, f"torch.{name}", detail, 1, inputs, number)


@pytest.mark.parametrize(
    ("values", "ops", "label"),
    [
        (1, [op("a", "f32[4]"), op("b", "f32[]", "a")], "f32[]"),
        (1, [op("a", "f32[4]"), op("a_1", "f32[8]")], "f32[4] | f32[8]"),
        (1, [op("a", "f32[4]"), op("b", "f32[8]"), op("c", "f32[2]")], "f32[4] | f32[8] | …"),
        (1, [op("a", "f32[4]"), op("b", "f32[9]", compile="0/1")], "f32[9]"),
        (1, [op("size", "Sym(s7)")], "s7"),
        (2, [op("a", "f32[4]"), op("b", "f32[8]")], "(f32[4], f32[8])"),
        (2, [op("a", "f32[4]")], None),
        (0, [op("a", "f32[4]")], None),
        (1, [op("setitem", "")], None),
        (1, [], None),
    ],
)
def test_what_a_statement_gives(values: int, ops: list[Op], label: str | None) -> None:
    found = value_label(values, ops)
    assert (found and found[0]) == label


def test_words() -> None:
    assert type_text("f32[s77, 64][64, 1]cpu") == "f32[s77, 64]" and type_text("f32[2][1]cuda:0") == "f32[2] cuda:0"
    assert layout_text("f32[s77, 64][64, 1]cpu") == "strides [64, 1], cpu" and layout_text("Sym(s1)") == ""
    assert short_target("torch._C._nn.linear") == "linear" and short_target("torch.ops.aten.mm.default") == "mm"
    assert symbols_in("f32[s77, (s27//4), u0]") == ("s77", "s27", "u0")


def test_statements() -> None:
    text = 'x = 1\nfor i in f(\n    x\n):\n    y = """é\n"""  # é\nwhile x: a, b = c\nreturn_ = (1, 2)\n*a, b = c\n'
    found = statement_of_line(text)
    assert found[0] == Statement(0, 0, 5, 1)
    assert found[1] == found[3] == Statement(1, 3, 1, 0)
    assert found[4] == found[5] == Statement(4, 5, 3, 1)
    assert found[6] == Statement(6, 6, 17, 2)
    assert found[7].values == 2 and found[8].values == 0
    assert statement_of_line("x = = 1") == {}


def test_of_a_frame_that_recompiles_the_newest_counts_and_a_broken_graph_is_passed_over() -> None:
    texts = [
        CompileTexts(compile_of("/a.py", "0/0"), GRAPH.format(file="/a.py"), {"symbols": []}),
        CompileTexts(compile_of("/a.py", "0/1"), "no graph"),
    ]
    facts = facts_of_texts(texts)
    assert list(facts.ops) == [file_key("/a.py")]
    assert facts.arguments == {"0/0": {"x": "f32[s77, 8][8, 1]cpu"}}
