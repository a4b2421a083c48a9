"""What is read of Triton's cache, and how Triton's listener is shared with whoever else listens."""

from __future__ import annotations

import json
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from irscope.internals.triton_hooks import listener_hook
from irscope.ir.line_tables import KERNEL_TEXT, with_lines
from irscope.lowering import LoweringError
from irscope.lowering.tools import kernel_text
from irscope.pipeline_captures.inductor.triton import SeenKernel, TritonKernel
from irscope.pipeline_captures.inductor.triton_stages import TritonStages, lowered_stages
from irscope.pipelines.registry import stage_kind
from irscope.protocol import Kernel, Lane, StageRef
from irscope.store.store import Store
from triton_kernels import EXAMPLES, FOLDER, GENERATED, KINDS, Example


def kernel(example: Example, **files: str) -> TritonKernel:
    kept = {
        "source" if kind == "ttir-unoptimized" else kind: str(FOLDER / example.folder / f"kernel.{kind}")
        for kind in KINDS
    }
    return TritonKernel(example.name, {**kept, **files}, example.file)


def test_the_text_is_found_in_its_file(tmp_path: Path) -> None:
    """Line tables count in the text, not in the file that holds it after an empty line."""
    text = GENERATED.text("text")
    file = tmp_path / "cpstppefqcs.py"
    for before, known in (("", True), ("\n\n\n", True), ("import os\n", False)):
        file.write_text(before + text)
        ptx = tmp_path / "kernel.ptx"
        shift = before.count("\n") - 1  # the table is of a file with one empty line
        ptx.write_text(f'\t.file 1 "{file}"\n\t.loc 1 {24 + shift} 5\n\tmov.u32 a, b;\n')
        compiled = TritonKernel(GENERATED.name, {"ptx": str(ptx)}, str(file))
        (stage,) = lowered_stages(compiled, "0/0/kernel/k", text)
        assert "lines" not in stage.data  # they are worked out when they are read
        data = with_lines(json.loads(json.dumps(stage.data)), "ptx", stage.text)
        assert data == {"lines": [[3, 23]] if known else [], "source": "0/0/kernel/k"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_no_binary_where_triton_kept_none(example: Example) -> None:
    stages = lowered_stages(kernel(example), "k", example.text("text"), example.first_line)
    assert [stage.name for stage in stages] == list(KINDS)
    languages = {stage.name: stage_kind(stage.name).language for stage in stages}
    assert all(with_lines(stage.data, languages[stage.name], stage.text)["lines"] for stage in stages)


def test_the_store_works_out_the_lines(tmp_path: Path) -> None:
    (ptx,) = (
        s
        for s in lowered_stages(kernel(GENERATED), "k", GENERATED.text("text"), GENERATED.first_line)
        if s.name == "ptx"
    )
    with Store(str(tmp_path / "runs.db")) as store:
        run = store.create_run("model.py", [], Lane.DEEP, "digest")
        store.put_stage(run, "0/0", StageRef("0/0/kernel/k/ptx", "ptx", "ptx", len(ptx.text)), ptx.text, 1.0, ptx.data)
        data = store.stage_data(run, "0/0/kernel/k/ptx")
    assert data == with_lines(ptx.data, "ptx", ptx.text) and len(data["lines"]) > 5
    assert KERNEL_TEXT not in data


@pytest.mark.parametrize(
    "kept",
    [None, [], {}, {"file": "a", "first_line": "x", "lines": 1}, {"file": "a", "first_line": float("inf"), "lines": 1}],
)
def test_damaged_facts_of_a_text(kept: Any) -> None:
    assert with_lines({KERNEL_TEXT: kept, "source": "k"}, "ptx", ".loc 1 1 1") == {"lines": [], "source": "k"}
    assert with_lines({"lines": [[1, 2]]}, "ptx", "") == {"lines": [[1, 2]]}


class Tuner:
    pass


def test_of_several_configurations_the_chosen_one_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the first one, at the end, of a kernel that was never called."""
    written: list[tuple[str, str]] = []

    def read(seen: Any) -> TritonKernel:
        first = seen.launchers[0]
        return TritonKernel("k", {"ptx": first}, "", config=first, configs=len(seen.launchers))

    module = "irscope.pipeline_captures.inductor.triton_stages"
    monkeypatch.setattr(f"{module}.read_inductor_kernel", read)
    monkeypatch.setattr(f"{module}.lowered_stages", lambda kernel, *args, **options: [kernel.config])
    monkeypatch.setattr(TritonStages, "_write", lambda self, kernel, stages: written.append((kernel.stage, *stages)))
    gaps: list[object] = []
    newest = Kernel("k", "triton", "0/0", "0/0/kernel/k", ())
    kernels = types.SimpleNamespace(named=lambda name: (newest, ""))
    stages = TritonStages(cast(Any, types.SimpleNamespace(gap=gaps.append)), cast(Any, kernels))
    called, never = Tuner(), Tuner()
    stages.inductor_loaded(SeenKernel(called, ["a", "b"]))
    assert written == []
    newest = Kernel("k", "triton", "1/0", "1/0/kernel/k", ())  # another kernel of this name
    stages.inductor_loaded(SeenKernel(never, ["c", "d"]))
    stages.inductor_loaded(SeenKernel(called, ["b"]))
    assert written == [("0/0/kernel/k", "b")]
    stages.finish()
    assert (written[1:], gaps) == ([("1/0/kernel/k", "c")], [])


def test_nothing_kept() -> None:
    with pytest.raises(LookupError, match="holds nothing of k"):
        lowered_stages(TritonKernel("k", {"ttir": "/nowhere/k.ttir"}, ""), "k", "")


@pytest.mark.parametrize("kept", [None, {}, {"file": "a", "first_line": "x", "lines": 1}, []])
def test_damaged_facts_of_a_binary(kept: Any) -> None:
    with pytest.raises(LoweringError, match="is damaged"):
        kernel_text(kept)


Listener = Callable[..., None] | None


def knobs(listener: Listener) -> Any:
    return types.SimpleNamespace(compilation=types.SimpleNamespace(listener=listener))


def test_listeners_before_and_after_ours() -> None:
    heard: list[str] = []
    module = knobs(lambda **facts: heard.append(f"theirs {facts['src']}"))
    before = module.compilation.listener
    undo = listener_hook(lambda facts: heard.append(f"ours {facts['src']}")).apply(module)
    module.compilation.listener(src="a")
    assert heard == ["theirs a", "ours a"]
    undo()
    assert module.compilation.listener is before

    undo = listener_hook(print).apply(module)
    module.compilation.listener = before  # the script sets one while it runs
    with pytest.raises(RuntimeError, match="its own listener"):
        undo()
    assert module.compilation.listener is before


def test_what_inductor_compiles_is_not_heard_twice() -> None:
    """Inductor's kernels are seen when they are loaded."""
    heard: list[Any] = []
    module = knobs(None)
    listener_hook(heard.append).apply(module)
    inductor = compile("listener(src=1)", "/site-packages/torch/_inductor/runtime/triton_heuristics.py", "exec")
    exec(inductor, {"listener": module.compilation.listener})
    assert heard == []
    exec("listener(src=2)", {"listener": module.compilation.listener})
    assert heard == [{"src": 2}]
