"""What is read of Triton's cache, and how Triton's listener is shared with whoever else listens."""

from __future__ import annotations

import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from irscope.internals.triton_hooks import listener_hook
from irscope.lowering import LoweringError
from irscope.lowering.tools import kernel_text
from irscope.pipelines.inductor.triton import TritonKernel
from irscope.pipelines.inductor.triton_stages import lowered_stages
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
        assert stage.data == {"lines": [(3, 23)] if known else [], "source": "0/0/kernel/k"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_no_binary_where_triton_kept_none(example: Example) -> None:
    stages = lowered_stages(kernel(example), "k", example.text("text"), example.first_line)
    assert [stage.name for stage in stages] == list(KINDS)
    assert all(stage.data["lines"] for stage in stages)


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
