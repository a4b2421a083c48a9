"""What the panels show, asked of the real server: of a real training run, of one that was edited since, and of runs
that have nothing of it."""

from __future__ import annotations

import dataclasses
import importlib.util
import pkgutil
import re
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
from irscope.protocol import CompileOutcome, Lane, Outcome, OutcomeKind, StageRef
from irscope.store.store import Store
from irscope.usercode.source import digest_of
from irscope_server import panels
from irscope_server.base import wire
from lsp_editor import Editor, StartEditor
from made import GRAPH, SCRIPT, compile_of, finding, related
from support import run_forked

EXTENSION = Path(__file__).parents[3] / "extension" / "src"
TYPES = "\n".join((EXTENSION / name).read_text("utf-8") for name in ("protocol.ts", "panels/results.ts"))

MODEL = """\
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 4))


@torch.compile
def loss(x, y):
    out = model(x) * 1.0
    total = torch.nn.functional.mse_loss(out.reshape(out.shape), y)
    if total.item() > 100:
        total = total * 0.5
    return total + (out * 0).sum()


loss(torch.randn(8, 16), torch.randn(8, 4)).backward()
"""
EDITED = MODEL.replace("import torch\n", "import torch\n\n# a comment\n", 1).replace(
    "    if total.item() > 100:\n        total = total * 0.5\n", ""
)


@dataclass(frozen=True)
class Stored:
    store: Path
    script: Path
    run: str
    edited: str
    fast: str


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    """A deep run, one in the fast lane, and a deep run of the text as it was edited, which is how the file is left."""
    folder = tmp_path_factory.mktemp("panels")
    script, store = folder / "train.py", folder / "runs.db"

    def run(text: str, lane: str = "deep") -> str:
        script.write_text(text)
        ran = run_forked(script, store, lane)
        assert ran.report.outcome.exit_code == 0, ran.stdout + ran.stderr
        return ran.report.run

    return Stored(store, script, run(MODEL), fast=run(MODEL, "fast"), edited=run(EDITED))


async def editor_of(start_editor: StartEditor, stored: Stored) -> Editor:
    return await start_editor(playing=True, options={"storePath": str(stored.store), "run": {"onSave": "off"}})


@pytest.mark.worker
async def test_the_pipeline_of_a_training_step(start_editor: StartEditor, stored: Stored) -> None:
    editor = await editor_of(start_editor, stored)
    found = await editor.request("irscope/pipeline", run=stored.run)
    stages = {(stage.track, stage.name): stage for stage in found.stages}
    assert found.compile == "0/0" and [one.id for one in found.compiles] == ["0/0", "1/0"]
    assert found.compiles[1].function == "loss, after line 11"
    assert [name for track, name in stages if track == "shared"] == [
        "bytecode", "dynamo-graph", "pre-grad-graph", "joint-graph",
    ]  # fmt: skip
    down = ["post-grad-graph", "ir-pre-fusion", "ir-post-fusion", "output-code", "kernel"]
    assert [name for track, name in stages if track == "forward"] == ["forward-graph", *down]
    assert [name for track, name in stages if track == "backward"] == ["backward-graph", *down]
    assert all(stages["forward", name].column == stages["backward", name].column for name in down)

    with Store(str(stored.store)) as store:
        text = store.stage_text(stored.run, "0/0/joint-graph")
        kernels = [one for one in store.report(stored.run).kernels if one.compile == "0/0"]
    joint = stages["shared", "joint-graph"]
    assert joint.bytes == len(text.encode()) and joint.isGraph and joint.seconds > 0
    declared = re.findall(r"^        (\w+): \"", text, re.MULTILINE)
    assert (joint.count, joint.unit) == (len(declared) + 1, "nodes")  # and what it returns
    for op in joint.ops:
        assert op.name in text.split("\n")[op.line] and text.count(op.name + "(") == op.count
    ours = [stages[track, "kernel"].count for track in ("forward", "backward")]
    assert sum(ours) == sum(kernel.language != "extern" for kernel in kernels)
    assert {one.language: one.count for one in found.kernels} == {
        "cpp": sum(kernel.language == "cpp" for kernel in kernels),
        "extern": sum(kernel.calls for kernel in kernels if kernel.language == "extern"),
    }
    assert {entry.title for entry in stages["shared", "dynamo-graph"].beside} >= {"Guards", "Symbolic trace"}
    assert [entry.title for entry in stages["backward", "output-code"].beside] == ["Memory plan (backward)"]


async def test_a_run_that_goes_on_says_so_where_there_is_nothing_yet(start_editor: StartEditor, tmp_path: Path) -> None:
    """The process that records it is this one."""
    with Store(str(tmp_path / "runs.db")) as store:
        run = store.create_run("/w/a.py", (), Lane.DEEP, "")
        editor = await start_editor(playing=True, options={"storePath": store.path, "run": {"onSave": "off"}})
        for method in ("pipeline", "memory", "phases"):
            found = await editor.request(f"irscope/{method}", run=run)
            assert found.reason == "The run is going on. It has compiled nothing so far."
        first = await editor.request("irscope/changes", run=run)
        assert first.reason == "The run is going on. This is the first deep run of this script that is kept."
        assert (await editor.request("irscope/findings", run=run)).standing == "The run is going on."


@pytest.mark.worker
async def test_passes_that_changed_something_and_those_that_did_not(start_editor: StartEditor, stored: Stored) -> None:
    editor = await editor_of(start_editor, stored)
    found = await editor.request("irscope/pipeline", run=stored.run, compile="0/0")
    for stage in found.stages:
        with Store(str(stored.store)) as store:
            data = store.stage_data(stored.run, stage.stage)
        ran = (data.get("passes") or []) if isinstance(data, dict) else []
        did = [one for one in ran if one["added"] or one["removed"] or one["changed"] or one["moved"]]
        assert [one.name for one in stage.passes] == [one["pass"] for one in did]
        assert sum(one.count for one in stage.quiet) == len(ran) - len(did)
    joint = next(stage for stage in found.stages if stage.name == "joint-graph")
    first = joint.passes[0]
    assert first.name == "remove_noop_ops" and first.removed == len(first.namesRemoved) > 0
    before = (await editor.request("irscope/document", uri=first.before)).text
    after = (await editor.request("irscope/document", uri=first.uri)).text
    for name in first.namesRemoved:
        assert re.search(rf"\b{name}: ", before) and not re.search(rf"\b{name}: ", after)


@pytest.mark.worker
async def test_steps_along_the_pipeline(start_editor: StartEditor, stored: Stored) -> None:
    """From the line of the gelu in the text as it is now down to a kernel, and back."""
    editor = await editor_of(start_editor, stored)
    uri = editor.open(stored.script)
    line = EDITED.split("\n").index("    out = model(x) * 1.0")
    subject = await editor.request("irscope/subjectOf", uri=uri, line=line)
    assert subject.run.run == subject.deep.run == stored.edited and subject.compile == "0/0"
    assert (await editor.request("irscope/subjectOf", uri=uri, line=0)).compile is None

    step = await editor.request("irscope/step", run=stored.run, uri=uri, line=line, target="0/0/forward-graph")
    assert step.exact, "the older run's lines stand elsewhere"
    seen, alike = [], []
    stage, here = step.stage, step.line
    while True:
        step = await editor.request("irscope/step", run=stored.run, stage=stage, line=here, by=1)
        if step.uri is None:
            assert step.reason == "This is the last stage of this compile."
            break
        seen.append((step.stage.split("/")[2], step.exact))
        alike += [step.stage.split("/")[2]] if step.alike else []
        stage, here = step.stage, step.line
    assert [name for name, _ in seen] == ["post-grad-graph", "ir-pre-fusion", "ir-post-fusion", "output-code", "kernel"]
    assert all(exact for name, exact in seen if name != "kernel")
    assert alike == ["post-grad-graph", "ir-post-fusion"], (
        "an IR has no lines in common with a graph, nor code with an IR"
    )
    names = []
    while stage is not None:
        step = await editor.request("irscope/step", run=stored.run, stage=stage, line=here, by=-1)
        stage, here = step.stage, step.line
        names.append(stage)
    assert names[-2:] == ["0/0/bytecode", None] and step.uri == uri and step.exact
    gone = await editor.request("irscope/subjectOf", uri=f"irscope:/{stored.run}/0/0/joint-graph.py")
    assert (gone.run.run, gone.compile, gone.stage) == (stored.run, "0/0", "0/0/joint-graph")


@pytest.mark.worker
async def test_times_and_memory(start_editor: StartEditor, stored: Stored) -> None:
    editor = await editor_of(start_editor, stored)
    found = await editor.request("irscope/phases", run=stored.run)
    rows = found.phases.rows
    assert found.compiles == 2 and not found.phases.isChange
    kinds = {row.name.partition(" ")[0]: row.kind for row in rows}
    assert "bytecode_tracing" in kinds and kinds["GraphLowering.run"] == "lowering to Inductor's IR"
    assert sum(row.whole[0] for row in rows if row.parent == 0) == pytest.approx(rows[0].whole[0])

    found = await editor.request("irscope/memory", run=stored.run, compile="0/0")
    forward, backward = found.plans
    with Store(str(stored.store)) as store:
        data = store.stage_data(stored.run, "0/0/memory-plan")
        partition = store.stage_data(stored.run, "0/0/partition")
    assert forward.live[forward.peak] == max(forward.live) == data["peak"]["bytes"]
    for plan in (forward, backward):
        for number, live in enumerate(plan.live):
            holding = [b for b in plan.buffers if b.category != "borrowed" and b.first <= number <= b.last]
            assert sum(b.bytes for b in holding) == live
        assert plan.modules.rows[0].whole[0] == plan.live[plan.peak]
    kept = {buffer.name: buffer for buffer in forward.buffers if buffer.category == "kept"}
    activations = [entry["bytes"] for entry in partition["saved"] if entry["kind"] == "activation"]
    assert kept and all(buffer.bytes in activations for buffer in kept.values())
    assert {buffer.category for buffer in backward.buffers} <= {"returned", "temporary", "borrowed"}
    line = MODEL.split("\n").index("    out = model(x) * 1.0")
    places = await editor.request("irscope/memoryPlaces", run=stored.run, compile="0/0")
    assert [plan.stage for plan in places.plans] == [forward.stage, backward.stage]
    made = {buffer.name: buffer.places for buffer in places.plans[0].buffers}
    assert any(place.line == line for name in kept for place in made[name])
    assert any(buffer.module.startswith("model") for buffer in kept.values())
    text = (await editor.request("irscope/document", uri=forward.uri)).text.split("\n")
    assert all(text[buffer.line].split()[0] == buffer.name for buffer in forward.buffers)


@pytest.mark.worker
async def test_findings_by_cause_and_what_hides_them(start_editor: StartEditor, stored: Stored) -> None:
    editor = await editor_of(start_editor, stored)
    found = await editor.request("irscope/findings", run=stored.run)
    cut = next(group for group in found.groups if group.kind == "graph-break")
    (place,) = cut.places
    assert (cut.title, cut.code, cut.severity) == ("Graph break", "GB0124", "warning")
    assert place.code == "if total.item() > 100:" and place.hidden == "" and place.line == 10
    assert cut.graphs == 1 and 0 < cut.seconds < found.seconds and cut.link.startswith("https://")
    off = await start_editor(
        playing=True,
        options={"storePath": str(stored.store), "run": {"onSave": "off"}, "severity": {"graph-break": "off"}},
    )
    found = await off.request("irscope/findings", run=stored.run)
    assert [p.hidden for group in found.groups if group.kind == "graph-break" for p in group.places] == ["off"]


@pytest.mark.worker
async def test_what_changed_since_the_run_before(start_editor: StartEditor, stored: Stored) -> None:
    editor = await editor_of(start_editor, stored)
    found = await editor.request("irscope/changes", run=stored.edited)
    assert found.run.run == stored.edited and found.since.run == stored.run, "the fast run is of another lane"
    assert [one.run for one in found.older] == [stored.run]
    assert "graph-break" in [one.kind for one in found.findingsGone]
    assert [one.id for one in found.compilesGone] == ["1/0"] and not found.compilesNew
    (compile,) = found.compilesChanged
    assert compile.id == "0/0" and "graph break → compiled" in compile.what
    for stage in compile.stages:
        left, right = [(await editor.request("irscope/document", uri=uri)).text for uri in (stage.left, stage.right)]
        assert left != right
    before, after = found.compileSeconds
    assert before > 0 and after > 0
    assert re.match(r"\d+ findings? fixed · ", found.summary) and "compile time" in found.summary
    whole = found.time.rows[0].whole
    assert whole[0] == pytest.approx(whole[2] - whole[1]) and whole[2] > 0 and len(found.time.rows) > 2
    assert [measure.unit for measure in found.memory.measures] == ["bytes"] * 3
    first = await editor.request("irscope/changes", run=stored.run)
    assert first.time.rows == []
    assert first.since is None and "first deep run" in first.reason
    named = await editor.request("irscope/changes", run=stored.edited, since=stored.fast)
    assert named.since.run == stored.fast


@pytest.mark.worker
async def test_kernels_to_choose_from_are_told_apart(start_editor: StartEditor, stored: Stored) -> None:
    editor = await editor_of(start_editor, stored)
    uri = editor.open(stored.script)
    line = EDITED.split("\n").index("def loss(x, y):")
    kernels = (await editor.request("irscope/kernelsAt", uri=uri, line=line)).kernels
    assert {kernel.direction for kernel in kernels} == {"forward", "backward"}
    assert {kernel.function for kernel in kernels} == {"loss"}
    told = {(kernel.direction, op): kernel for kernel in kernels for op in kernel.ops}
    gelu = told["forward", "gelu"]
    assert (gelu.module, gelu.language) == ("model.1", "cpp") and "view" not in gelu.ops
    assert gelu.bytes == len((await editor.request("irscope/document", uri=gelu.uri)).text)
    assert told["backward", "mm"].language == "extern" and told["backward", "mm"].bytes == 0
    generated = [kernel for kernel in kernels if kernel.language != "extern"]
    run = (await editor.request("irscope/runs", uri=uri, limit=10)).runs[0]
    (_, (_, title)) = await editor.lenses(uri)
    assert f" · {len(generated)} kernels · " in title and run.kernels == len(generated)


@pytest.mark.worker
async def test_a_fast_run_says_what_to_do(start_editor: StartEditor, stored: Stored) -> None:
    editor = await editor_of(start_editor, stored)
    found = await editor.request("irscope/memory", run=stored.fast)
    assert "the fast lane" in found.reason and "Run the whole pipeline" in found.reason
    found = await editor.request("irscope/phases", run=stored.fast)
    assert found.phases.rows[-1].kind == "the whole compile" and found.phases.rows[0].whole[0] > 0
    found = await editor.request("irscope/pipeline", run=stored.fast)
    assert {stage.name for stage in found.stages} <= {"bytecode", "dynamo-graph"}


async def test_the_pipeline_of_what_was_not_compiled_says_why_it_ends(
    start_editor: StartEditor, tmp_path: Path, store_path: str
) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    file, outcomes = str(script), (CompileOutcome.SKIPPED, CompileOutcome.ERROR, CompileOutcome.COMPILED)
    with Store(store_path) as store:
        run = store.create_run(file, [], Lane.DEEP, digest_of(SCRIPT))
        for number, outcome in enumerate(outcomes):
            store.put_compile(run, compile_of(file, f"{number}/0", outcome=outcome, graph_ops=0))
            stage = StageRef(f"{number}/0/bytecode", "bytecode", "python-bytecode", 0)
            store.put_stage(run, f"{number}/0", stage, "RESUME\n", 0)
        store.put_source(run, file, SCRIPT)
        cause = related(file, 6, 4, 15, "this graph break is the cause")
        store.put_finding(run, finding(file, 4, kind="skipped-frame", code="skipped-by-break", related=(cause,)))
        failed = finding(file, 7, kind="compile-error", message="Compilation failed: no.", compiles=("1/0",))
        store.put_finding(run, failed)
        store.set_outcome(run, Outcome(OutcomeKind.COMPLETED, 0, "", 1.0))
    editor = await start_editor()
    ends = [(await editor.request("irscope/pipeline", run=run, compile=f"{n}/0")).end for n in range(3)]
    uri = script.as_uri()
    assert [end and (end.text, end.place.uri, end.place.line) for end in ends] == [
        ("Runs as plain Python: break at line 6 in f", uri, 5),
        ("Compilation failed: no.", uri, 6),
        None,
    ]


async def test_runs_with_nothing_in_them(start_editor: StartEditor, tmp_path: Path, store_path: str) -> None:
    """A run that crashed, one of another backend with damaged data, and one that there is not."""
    script = tmp_path / "<img src=x onerror=alert(1)>.py"
    script.write_text(SCRIPT)
    file = str(script)
    with Store(store_path) as store:
        empty = store.create_run(file, [], Lane.DEEP, digest_of(SCRIPT))
        store.set_outcome(empty, Outcome(OutcomeKind.CRASHED, None, "The script was killed by SIGSEGV.", 1.0))
        other = store.create_run(file, [], Lane.DEEP, digest_of(SCRIPT))
        store.put_compile(other, compile_of(file, function="<script>alert(1)</script>"))
        store.put_source(other, file, SCRIPT.replace('print("hi")', 'print("hi")  # irscope: ignore[GB0059]'))
        graph = StageRef("0/0/dynamo-graph", "dynamo-graph", "python", 0)
        store.put_stage(other, "0/0", graph, GRAPH.format(script=file), 1, {"nodes": 3})
        version = StageRef("0/0/dynamo-graph/01-mine", "dynamo-graph", "python", 0, "mine", 0.1)
        store.put_stage(other, "0/0", version, GRAPH.format(script=file).replace("sin + 1", "sin + 2"), 2)
        for number, name in enumerate(("memory-plan", "phases", "partition")):
            store.put_stage(
                other, "0/0", StageRef(f"0/0/{name}", name, "plaintext", 0), "?", 3 + number, {"version": 9}
            )
        store.put_finding(other, finding(file, 6, link="javascript:alert(1)"))
        store.set_outcome(other, Outcome(OutcomeKind.COMPLETED, 0, "", 1.0))
    editor = await start_editor()
    for method in ("pipeline", "phases", "memory"):
        found = await editor.request(f"irscope/{method}", run=empty)
        assert found.reason == "Nothing was compiled in this run. The script was killed by SIGSEGV.", method
    assert (await editor.request("irscope/findings", run=empty)).standing == "The script was killed by SIGSEGV."
    found = await editor.request("irscope/pipeline", run=other)
    (stage,) = found.stages
    (mine,) = stage.passes
    assert stage.count == 5 and found.compiles[0].function == "<script>alert(1)</script>"
    assert (mine.added, mine.removed, mine.changed) == (0, 0, 1), "compared by structure"
    assert (await editor.request("irscope/phases", run=other)).phases.rows[-1].kind == "the whole compile"
    assert (await editor.request("irscope/memory", run=other)).reason
    found = await editor.request("irscope/findings", run=other)
    (group,) = found.groups
    assert group.link is None and group.places[0].hidden == "ignored"
    for method, params in (
        ("pipeline", {"run": "none"}),
        ("pipeline", {"run": other, "compile": "9/9"}),
        ("step", {"run": other, "stage": "0/0/nothing"}),
        ("step", {"run": other, "stage": "0/0/memory-plan"}),
    ):
        with pytest.raises(Exception, match=r"none|9/9|nothing|not on the way"):
            await editor.request(f"irscope/{method}", **params)
    nobody = await editor.request("irscope/subjectOf", uri=(tmp_path / "other.py").as_uri())
    assert nobody.run is None and nobody.compile is None


def interfaces() -> dict[str, list[str]]:
    """Names of the fields of each interface of the generated types, to which docs/PROTOCOL.md leads."""
    found = {}
    for match in re.finditer(r"^export interface (\w+)\s*{(.*?)}\n(?=\n|\Z)", TYPES, re.MULTILINE | re.DOTALL):
        text = re.sub(r"/\*.*?\*/", "", match[2])
        while re.search(r"{[^{}]*}", text):
            text = re.sub(r"{[^{}]*}", "object", text)
        found[match[1]] = [name.strip("?") for name in re.findall(r"(\w+\??):", text)]
    return found


def panel_modules() -> list[ModuleType]:
    return [
        importlib.import_module(f"{panels.__name__}.{found.name}") for found in pkgutil.iter_modules(panels.__path__)
    ]


def test_the_protocol_has_the_fields_of_the_panels() -> None:
    ours = {
        cls.__name__.removesuffix("Result"): cls
        for module in panel_modules()
        for cls in vars(module).values()
        if isinstance(cls, type) and dataclasses.is_dataclass(cls) and cls.__module__ == module.__name__
        if not cls.__name__.startswith("_") and not cls.__name__.endswith("Params")
    }
    documented = interfaces()
    assert ours
    for name, cls in ours.items():
        assert documented.get(name) == [wire_name for _, wire_name in wire._names(cls)], name


def test_the_editors_tests_get_answers_of_the_same_shape() -> None:
    """The canned answers of tests/editor/fake_server have the fields of the protocol."""
    spec = importlib.util.spec_from_file_location("canned", Path(__file__).parents[2] / "editor/fake_server/panels.py")
    assert spec and spec.loader
    canned = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(canned)
    known = {frozenset(fields) for fields in [*interfaces().values(), ["uri", "line"]]}
    for method, answer in canned.ANSWERS.items():
        for run in (canned.RUN, canned.EMPTY):
            stage = "0/0/dynamo-graph"
            _check_shape(answer({"run": run, "uri": canned.HERE, "stage": stage, "by": 1}), known, method)


def _check_shape(value: object, known: set[frozenset[str]], what: str) -> None:
    if isinstance(value, dict):
        assert frozenset(value) in known, f"{what}: {sorted(value)}"
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ():
        _check_shape(inner, known, what)
