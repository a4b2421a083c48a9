"""Documents of stages as an editor asks about them, of one real run: a real server, real torch, a real C++ compiler."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from irscope import lowering
from irscope.store.store import Store
from irscope_server.base.stage_uris import uri_of_stage
from lsp_editor import Editor, StartEditor
from lsprotocol import types
from support import run_forked

pytestmark = pytest.mark.worker

SCRIPT = """\
import torch


def attend(q, k, v):
    scores = q @ k.transpose(-1, -2)
    scaled = scores / 8.0
    weights = scaled.softmax(-1)
    return weights @ v


@torch.compile
def block(x, w):
    y = attend(x, x, x)
    z = torch.nn.functional.layer_norm(x + y, (64,), w)
    return z.tanh()


with torch.no_grad():
    block(torch.ones(2, 16, 64), torch.ones(64))
"""
LINE = {text: number for number, row in enumerate(SCRIPT.split("\n")) for text in ("softmax", "/ 8.0", "layer_norm", "tanh", "def block", "attend(x") if text in row}  # fmt: skip
SOFTMAX = LINE["softmax"]


class Run:
    """A run in a store, and its texts."""

    def __init__(self, store: str, script: Path) -> None:
        self.store, self.script = store, script
        with Store(store) as opened:
            self.report = opened.report(opened.runs(1)[0].run)
            kernels = [k for k in self.report.kernels if k.language == "cpp" and "softmax" in k.name]
            self.softmax = kernels[0].stage
            lowering.make(opened, self.report, f"{self.softmax}/assembly", sys.executable)
            self.report = opened.report(self.report.run)
            self.stages = {stage.id: stage for compile in self.report.compiles for stage in compile.stages}
            self.rows = {id: opened.stage_text(self.report.run, id).split("\n") for id in self.stages}

    def uri(self, stage: str) -> str:
        return uri_of_stage(self.report.run, stage, self.stages[stage].language)

    def line(self, stage: str, text: str, after: int = -1) -> int:
        """The first line (0-based) with a text."""
        return next(n for n, row in enumerate(self.rows[stage]) if text in row and n > after)

    def place(self, stage: str, text: str, at: str = "") -> dict[str, Any]:
        """Where a text stands, or a part of it, as the parameters of a request."""
        line = self.line(stage, text)
        row = self.rows[stage][line]
        column = row.index(text) + (text.index(at) if at else 0)
        return {
            "text_document": types.TextDocumentIdentifier(self.uri(stage)),
            "position": types.Position(line, column),
        }


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("stages")
    script = folder / "script.py"
    script.write_text(SCRIPT)
    store = str(folder / "runs.db")
    assert run_forked(script, Path(store), "deep").report.outcome.exit_code == 0
    return Run(store, script)


@pytest.fixture
def start(start_editor: StartEditor, run: Run) -> Callable[..., Any]:
    async def begin(**kwargs: Any) -> Editor:
        settings = {"run": {"onSave": "off"}, "storePath": run.store}
        editor: Editor = await start_editor(playing=True, settings=settings, options={"storePath": run.store}, **kwargs)
        return editor

    return begin


# --- colours and counterparts -----------------------------------------------------------------------------------------


async def linked(editor: Editor, run: Run, uri: str) -> dict[int, set[int]]:
    """Line of a document → lines of the script that it came from."""
    found = await editor.request("irscope/linkedLines", uri=uri, run=run.report.run)
    assert all(key.uri == run.script.as_uri() for key in found.keys)
    return {row[0]: {found.keys[index].line for index in row[1:]} for row in found.lines}


async def test_the_same_line_has_the_same_key_in_every_stage(start: Callable[..., Any], run: Run) -> None:
    editor = await start()
    graph = await linked(editor, run, run.uri("0/0/post-grad-graph"))
    for name, origin in (("exp:", "softmax"), ("sum_1:", "softmax"), ("rsqrt:", "layer_norm"), ("tanh:", "tanh")):
        assert graph[run.line("0/0/post-grad-graph", f"{name} ")] == {LINE[origin]}, name
    kernel = await linked(editor, run, run.uri(run.softmax))
    assert kernel[run.line(run.softmax, ".exp()")] == {SOFTMAX}
    both = {LINE["/ 8.0"], SOFTMAX}
    assert kernel[run.line(run.softmax, "(8.0)")] == both, "a pass has put the division into the softmax"
    assert run.line(run.softmax, "#include") not in kernel and run.line(run.softmax, "for(") not in kernel
    assembly = await linked(editor, run, run.uri(f"{run.softmax}/assembly"))
    assert set().union(*assembly.values()) <= {SOFTMAX, LINE["/ 8.0"]} and len(assembly) > 20
    code = await linked(editor, run, run.uri("0/0/output-code"))
    first = run.line("0/0/output-code", f"{run.softmax.rpartition('/')[2]} = async_compile")
    assert code[run.line("0/0/output-code", ".exp()", first)] == {SOFTMAX}
    call = run.line("0/0/output-code", "extern_kernels.bmm(")
    assert code[call] == {LINE["softmax"] - 2}


async def test_lines_of_the_source_follow_edits(start: Callable[..., Any], run: Run) -> None:
    editor = await start()
    uri = editor.open(run.script)
    found = await linked(editor, run, uri)
    assert found[SOFTMAX] == {SOFTMAX} and found[LINE["attend(x"]] == set()  # it calls what was compiled
    assert LINE["def block"] not in found
    editor.change(uri, "# moved\n" + SCRIPT.replace("z.tanh()", "z.tanh() * 2"))
    moved = await linked(editor, run, uri)
    assert moved[SOFTMAX + 1] == {SOFTMAX + 1} and LINE["tanh"] + 1 not in moved


async def counterparts(editor: Editor, run: Run, uri: str, line: int, *among: str) -> dict[str, list[int]]:
    found = await editor.request("irscope/counterparts", uri=uri, line=line, run=run.report.run, among=list(among))
    return {place.uri: list(place.lines) for place in found.places}


async def test_counterparts_up_and_down(start: Callable[..., Any], run: Run) -> None:
    editor = await start()
    source = editor.open(run.script)
    graph, kernel = run.uri("0/0/post-grad-graph"), run.uri(run.softmax)
    assembly, code = run.uri(f"{run.softmax}/assembly"), run.uri("0/0/output-code")
    exp = run.line("0/0/post-grad-graph", "exp: ")
    down = await counterparts(editor, run, graph, exp, source, kernel, assembly, code)
    assert down[source] == [SOFTMAX]
    assert run.line(run.softmax, ".exp()") in down[kernel] and run.line(run.softmax, "#include") not in down[kernel]
    assert down[assembly] and down[code]
    lines = [run.rows[run.softmax][line] for line in down[kernel]]
    assert not any("max" in row and "C10" not in row for row in lines), "amax is another node of the same line"
    up = await counterparts(editor, run, assembly, down[assembly][0], source, kernel, graph)
    assert set(up[source]) <= {SOFTMAX, LINE["/ 8.0"]} and len(up[kernel]) == 1 and up[graph]
    from_source = await counterparts(editor, run, source, SOFTMAX, graph, kernel, assembly)
    assert exp in from_source[graph] and run.line("0/0/post-grad-graph", "tanh: ") not in from_source[graph]
    caller = await counterparts(editor, run, source, LINE["attend(x"], graph)
    assert exp in caller[graph] and run.line("0/0/post-grad-graph", "tanh: ") not in caller[graph]
    assert await counterparts(editor, run, source, 0, graph) == {}


@pytest.mark.parametrize(
    ("method", "params", "said"),
    [
        ("irscope/linkedLines", {"uri": "irscope:/none/0/0/x.py"}, "none"),
        ("irscope/linkedLines", {"uri": "irscope:/RUN/0/0/x.py"}, "no stage 0/0/x"),
        ("irscope/counterparts", {"uri": "irscope:/RUN/0/0/x.py", "line": 0, "run": "RUN", "among": []}, "no stage"),
        ("irscope/counterparts", {"uri": "file:///x.py", "line": 0, "run": "RUN", "among": [1]}, "array of strings"),
    ],
)
async def test_what_cannot_be_answered_says_why(
    start: Callable[..., Any], run: Run, method: str, params: dict[str, Any], said: str
) -> None:
    editor = await start()
    filled = {k: v.replace("RUN", run.report.run) if isinstance(v, str) else v for k, v in params.items()}
    with pytest.raises(Exception, match=said):
        await editor.request(method, **filled)


# --- kernels ----------------------------------------------------------------------------------------------------------


async def test_kernels_of_a_line_a_function_and_a_node(start: Callable[..., Any], run: Run) -> None:
    editor = await start()
    uri = editor.open(run.script)
    name = run.softmax.rpartition("/")[2]

    async def names(uri: str, line: int) -> list[str]:
        return [kernel.name for kernel in (await editor.request("irscope/kernelsAt", uri=uri, line=line)).kernels]

    assert await names(uri, SOFTMAX) == [name]
    whole = await names(uri, LINE["def block"])
    assert set(whole) == {kernel.name for kernel in run.report.kernels} and len(whole) > 2
    assert await names(run.uri("0/0/post-grad-graph"), run.line("0/0/post-grad-graph", "exp: ")) == [name]
    for text in ("code: weights = scaled.softmax(-1)", "weights: "):  # the comment above the node, and the node
        assert await names(run.uri("0/0/dynamo-graph"), run.line("0/0/dynamo-graph", text)) == [name]
    assert await names(run.uri(f"{run.softmax}/assembly"), 5) == [name]
    call = run.line("0/0/output-code", f"{name}(")
    assert await names(run.uri("0/0/output-code"), call) == [name]
    assert await names(run.uri("0/0/output-code"), 1) == []


# --- names ------------------------------------------------------------------------------------------------------------


async def test_names_of_a_graph(start: Callable[..., Any], run: Run) -> None:
    editor = await start()
    graph = "0/0/post-grad-graph"
    use = run.place(graph, "aten.sum.dim_IntList(exp", "exp")
    (made,) = await editor.client.text_document_definition_async(types.DefinitionParams(**use))
    assert made.range.start.line == run.line(graph, "exp: ") and made.uri == run.uri(graph)
    context = types.ReferenceContext(include_declaration=False)
    uses = await editor.client.text_document_references_async(types.ReferenceParams(context, **use))
    assert {run.rows[graph][place.range.start.line].split(":")[0].strip() for place in uses or []} >= {"sum_1"}
    assert made.range not in [place.range for place in uses or []]
    lit = await editor.client.text_document_document_highlight_async(types.DocumentHighlightParams(**use))
    assert len(lit or []) == len(uses or []) + 1
    comment = run.place(graph, "# File: ")
    (source,) = await editor.client.text_document_definition_async(types.DefinitionParams(**comment))
    assert source.uri == run.script.as_uri()


async def test_names_of_output_code_lead_to_kernels(start: Callable[..., Any], run: Run) -> None:
    editor = await start()
    code, name = "0/0/output-code", run.softmax.rpartition("/")[2]
    call = run.place(code, f"        {name}(", name)
    (kernel,) = await editor.client.text_document_definition_async(types.DefinitionParams(**call))
    assert kernel.uri == run.uri(run.softmax)
    context = types.ReferenceContext(include_declaration=True)
    found = await editor.client.text_document_references_async(types.ReferenceParams(context, **call))
    assert [place.range.start.line for place in found or []] == [
        run.line(code, f"{name} = async_compile"),
        call["position"].line,
    ]
    inside = run.place(code, "tmp1 / tmp3", "tmp3") if "tmp1 / tmp3" in "\n".join(run.rows[code]) else None
    if inside is not None:
        (made,) = await editor.client.text_document_definition_async(types.DefinitionParams(**inside))
        assert "tmp3 =" in run.rows[code][made.range.start.line] and made.range.start.line < inside["position"].line


async def test_hovers_say_what_is_known(start: Callable[..., Any], run: Run) -> None:
    editor = await start()

    async def hover(stage: str, text: str, at: str = "") -> str:
        place = run.place(stage, text, at)["position"]
        shown: str = await editor.hover(run.uri(stage), place.line, place.character)
        return shown

    node = await hover("0/0/post-grad-graph", "exp: ")
    for part in ("**`exp`**", "`[2, 16, 16]`", "`float32`", "`2,048 bytes (2.05 kB)`", "`cpu`", f"#L{SOFTMAX + 1})"):
        assert part in node, node
    assert "FLOPs" in await hover("0/0/post-grad-graph", "bmm: ")
    line = await hover(run.softmax, ".exp()")
    assert "Computes `exp`" in line and "weights = scaled.softmax(-1)" in line
    assert f"[line {run.line(run.softmax, '.exp()') + 1}]" in "".join(
        [await editor.hover(run.uri(f"{run.softmax}/assembly"), n, 0) for n in range(0, 120, 1)]
    )
    code = await hover("0/0/output-code", f"        {run.softmax.rpartition('/')[2]}(", run.softmax.rpartition("/")[2])
    assert "C++ kernel" in code and run.uri(run.softmax) in code


async def test_outline_and_folds(start: Callable[..., Any], run: Run) -> None:
    editor = await start()

    async def outline(stage: str) -> list[types.DocumentSymbol]:
        document = types.TextDocumentIdentifier(run.uri(stage))
        found = await editor.client.text_document_document_symbol_async(types.DocumentSymbolParams(document))
        return [one for one in found or [] if isinstance(one, types.DocumentSymbol)]

    (forward,) = await outline("0/0/post-grad-graph")
    assert {"exp", "bmm", "output"} <= {one.name for one in forward.children or []}
    code = {one.name: one for one in await outline("0/0/output-code")}
    name = run.softmax.rpartition("/")[2]
    assert run.rows["0/0/output-code"][code[name].range.start.line].startswith(name) and "call" in code
    assert [one.name for one in await outline(run.softmax)] == ["kernel"]
    document = types.TextDocumentIdentifier(run.uri("0/0/output-code"))
    folds = await editor.client.text_document_folding_range_async(types.FoldingRangeParams(document))
    whole = code[name].range
    assert (whole.start.line, whole.end.line) in {(fold.start_line, fold.end_line) for fold in folds or []}


async def test_only_documents_of_stages_are_registered(start: Callable[..., Any], run: Run) -> None:
    editor = await start()
    capabilities = editor.result.capabilities
    assert capabilities.definition_provider is None and capabilities.folding_range_provider is None

    def without(client: types.ClientCapabilities) -> None:
        assert client.text_document is not None and client.text_document.definition is not None
        client.text_document.definition.dynamic_registration = False

    plain = await start(change=without)
    assert plain.result.capabilities.definition_provider, "a client that cannot be told later is told at once"
