"""The text of a kernel is there before its compiler has begun, and what comes later is told as it comes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from irscope.protocol import to_json
from lsp_editor import SHARED, AtWork, StartEditor
from lsprotocol import types
from made import act, compile_of, kernel, stage

Play = Callable[..., Path]

COMPILER = """\
#!/bin/sh
for argument; do
    case "$argument" in *.cpp) source=$argument ;; esac
done
[ -z "$source" ] && exec g++ "$@"
grep -q "void *kernel(" "$source" || exit 1
touch {folder}/waits
until [ -e {folder}/go ]; do sleep 0.02; done
exit 1
"""
"""Compiles nothing: what asks for the processor's instructions fails at once, a kernel when there is a file."""
BLOCKED = """\
import torch
import torch._inductor.config as config

config.cpp.cxx = (None, {compiler!r})
config.cpp.vec_isa_ok = True
config.cpp_cache_precompile_headers = False
config.compile_threads = 1


@torch.compile
def f(x):
    return torch.relu(x).sin() + {number}


f(torch.ones(4, 8))
"""
OFF = {"run": {"onSave": "off"}}


@SHARED
@pytest.mark.worker
async def test_while_the_compiler_waits(at_work: AtWork, tmp_path: Path) -> None:
    """The C++ compiler waits for a file that is not there yet; when it fails in the end the kernel stays."""
    compiler, path = tmp_path / "c++", tmp_path / "script.py"
    compiler.write_text(COMPILER.format(folder=tmp_path))
    compiler.chmod(0o755)
    path.write_text(BLOCKED.format(compiler=str(compiler), number=time.time_ns()))
    editor = await at_work(OFF)
    uri = editor.open(path)
    answer = await asyncio.wait_for(editor.request("irscope/kernelsAt", uri=uri, line=11, run=True), 120)
    (found,) = answer.kernels
    assert answer.running and found.language == "cpp" and found.origins[0].line == 11
    text = (await editor.request("irscope/document", uri=found.uri)).text
    assert "#include" in text and "sin" in text
    await editor.until(lambda: (tmp_path / "waits").exists())
    assert editor.state == "running"
    (tmp_path / "go").touch()
    await editor.until_ended()
    (run,) = (await editor.request("irscope/runs", uri=uri)).runs
    assert (run.run, run.outcome) == (answer.run, "script-error")
    assert (await editor.request("irscope/document", uri=found.uri)).text == text
    again = await editor.request("irscope/kernelsAt", uri=uri, line=11)
    assert not again.running and [one.uri for one in again.kernels] == [found.uri]


def two_waves(script: Path, go: Path, **more: Any) -> dict[str, Any]:
    """A run whose backward comes when there is a file."""
    forward, backward = kernel("k0", "0/0", (str(script), 5)), kernel("k1", "0/0", (str(script), 5))
    stages = [[to_json(stage("0/0", "output-code")), ""], [to_json(stage("0/0", "kernel/k0", "cpp")), "void k0() {}\n"]]
    return act(
        script,
        findings=[],
        compiles=[[to_json(compile_of(str(script))), stages]],
        kernels=[to_json(forward)],
        until=str(go),
        later=[to_json(backward)],
        **more,
    )


async def test_what_comes_later_is_told(start_editor: StartEditor, play: Play, script: Path, tmp_path: Path) -> None:
    """The first kernels are an answer; the client is told when there are more, and asks again without a new run."""
    go = tmp_path / "go"
    play(two_waves(script, go, seconds=60))
    editor = await start_editor(playing=True, settings=OFF)
    uri = editor.open(script)
    first = await editor.request("irscope/kernelsAt", uri=uri, line=4, run=True)
    assert first.running and [one.name for one in first.kernels] == ["k0"]
    assert (await editor.request("irscope/document", uri=first.kernels[0].uri)).text == "void k0() {}\n"
    told = len(editor.told["irscope/runsChanged"])
    go.touch()
    await editor.until(lambda: len(editor.told["irscope/runsChanged"]) > told)
    again = await editor.request("irscope/kernelsAt", uri=uri, line=4)
    assert again.running and again.run == first.run and [one.name for one in again.kernels] == ["k0", "k1"]
    assert (await editor.request("irscope/cancel", uri=uri)).cancelled
    await editor.until_ended(1, 5)
    assert (await editor.request("irscope/document", uri=first.kernels[0].uri)).text == "void k0() {}\n"


async def test_a_line_without_kernels_waits_for_the_next(
    start_editor: StartEditor, play: Play, script: Path, tmp_path: Path
) -> None:
    """Kernels of other lines are no answer; a request that is cancelled takes its run with it, another one's not."""
    go, file = tmp_path / "go", str(script)
    act_of_two = two_waves(script, go, seconds=60)
    act_of_two["later"] = [to_json(kernel("k7", "0/0", (file, 7)))]
    play(act_of_two)
    editor = await start_editor(playing=True, settings=OFF)
    uri = editor.open(script)
    protocol = editor.client.protocol
    place = {"uri": uri, "line": 6, "run": True}
    mine = asyncio.ensure_future(protocol.send_request_async("irscope/kernelsAt", place, msg_id="mine"))
    await editor.until(lambda: len(editor.told.get("irscope/runsChanged", [])) > 0)
    other = asyncio.ensure_future(protocol.send_request_async("irscope/kernelsAt", place, msg_id="other"))
    assert (await editor.request("irscope/kernelsAt", uri=uri, line=4)).kernels, "the others are there"
    assert not mine.done() and not other.done()
    editor.client.cancel_request(types.CancelParams("other"))
    with pytest.raises(Exception, match="canceled"):
        await asyncio.wait_for(other, 60)
    go.touch()
    answer = await asyncio.wait_for(mine, 60)
    assert answer.running and [one.name for one in answer.kernels] == ["k7"]
