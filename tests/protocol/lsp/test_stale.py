"""What is shown while the text differs from what ran, while a new run goes on, and when nothing is typed."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from irscope_server.base.line_map import LineMap
from lsp_editor import StartEditor, data_of
from lsprotocol import types
from made import SCRIPT
from made import act_at as act

Play = Callable[..., Path]


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("    y = f(x)", "    y = f(x)", (0, 8)),
        ("    y = f(x)", "        y = f(x)", (0, 12)),
        ("    y = f(x)", "    y = f(x)  # why", (0, 8)),
        ("    y = f(x)", "# a new line\n    z = f(x)", (1, 8)),
        ("    y = f(x)", "    total = y + f(x)", (0, 16)),
        ("    y = f(x)", "    y = g(x)", None),
        ("    y = f(x)", "", None),
        ("    y = f(x)", "    y = f(x) + f(x)", (0, 8)),
    ],
)
def test_a_piece_of_a_line_moves_with_the_edits_beside_it(old: str, new: str, place: tuple[int, int] | None) -> None:
    around = (["before = 1"], ["after = 2", "and_more = 3"])
    before, after = ([*around[0], *text.split("\n"), *around[1]] for text in (old, new))
    found = LineMap(before, after).span(1, 8, 12)
    assert found == (None if place is None else (place[0] + 1, place[1]))


async def test_an_edit_marks_what_was_found_and_a_run_unmarks_it(
    start_editor: StartEditor, play: Play, script: Path
) -> None:
    play(act(script, 6))
    editor = await start_editor(playing=True)
    uri = editor.open(script)
    await editor.until(lambda: editor.codes(uri) == ["GB0006"])
    await editor.until(lambda: editor.file_state(uri) is not None and editor.file_state(uri).state == "current")
    assert "before your edit" not in await editor.hover(uri, 5, 6)
    edited = "# new\n" + SCRIPT
    editor.change(uri, edited)
    await editor.until(lambda: editor.file_state(uri).state == "stale")
    await editor.until(lambda: editor.diagnostics(uri)[0].range.start == types.Position(6, 4))
    assert data_of(editor.diagnostics(uri)[0])["stale"] is True
    assert "*Found before your edit; the next run may differ.*" in await editor.hover(uri, 6, 6)
    assert await editor.lenses(uri) == [
        (3, f"{each} · before your edit") for each in ("1 cause", "1 graph · 1 break · 500 ms")
    ]
    editor.change(uri, SCRIPT, 3)
    await editor.until(lambda: editor.file_state(uri).state == "current")
    assert "before your edit" not in (await editor.lenses(uri))[0][1], "what was typed was taken back"
    play(act(script, 7))
    editor.change(uri, edited, 4)
    editor.save(uri)
    await editor.until_ended(2)
    await editor.until(lambda: editor.file_state(uri).state == "current" and editor.codes(uri) == ["GB0007"])


async def test_an_edit_of_a_module_marks_what_its_script_found(
    start_editor: StartEditor, play: Play, script: Path
) -> None:
    module = script.with_name("lib.py")
    module.write_text("def g(x):\n    return x\n")
    play(act(script, 6))
    editor = await start_editor(playing=True)
    lib = editor.open(module)
    uri = editor.open(script)
    await editor.until(lambda: editor.file_state(uri) is not None and editor.file_state(uri).state == "current")
    editor.change(lib, "def g(x):\n    return x + 1\n")
    await editor.until(lambda: editor.file_state(uri).state == "stale")
    assert "before your edit" in (await editor.lenses(uri))[0][1]


async def test_a_run_takes_nothing_away_before_it_ends(start_editor: StartEditor, play: Play, script: Path) -> None:
    """The sequence of publications: what stays true is in each of them, what is new joins, what is gone goes last."""
    play(act(script, 3, 6), act(script, 6, 7, 3, pause=0.15, seconds=0.3), act(script, 6, 7, pause=0.15, seconds=0.3))
    editor = await start_editor(playing=True)
    uri = editor.open(script)
    await editor.until_ended()
    await editor.until(lambda: editor.codes(uri) == ["GB0003", "GB0006"])
    published = editor.published_codes[uri]
    for _ in range(2):
        editor.save(uri)
        await editor.until_ended(1 + len([told for told in editor.told["irscope/runsChanged"] if not told.running]))
    await editor.until(lambda: editor.codes(uri) == ["GB0006", "GB0007"])
    first = published.index(["GB0003", "GB0006"])
    seen = [codes for codes, _ in itertools.groupby(published[first:])]
    assert seen == [["GB0003", "GB0006"], ["GB0003", "GB0006", "GB0007"], ["GB0006", "GB0007"]]


async def test_what_a_superseded_run_had_found_does_not_flicker(
    start_editor: StartEditor, play: Play, script: Path
) -> None:
    play(act(script, 3), act(script, 3, 6, seconds=60), act(script, 3, 6, pause=0.2))
    editor = await start_editor(playing=True)
    uri = editor.open(script)
    await editor.until(lambda: editor.codes(uri) == ["GB0003"])
    await editor.until_ended()
    editor.save(uri)
    await editor.until(lambda: editor.codes(uri) == ["GB0003", "GB0006"])
    editor.change(uri, SCRIPT + "# edited\n")
    editor.save(uri)
    await editor.until_ended(3)
    await asyncio.sleep(0.2)
    published = editor.published_codes[uri]
    assert all("GB0006" in codes for codes in published[published.index(["GB0003", "GB0006"]) :])
    assert data_of(editor.diagnostics(uri)[0]).get("stale") is None


async def test_a_lens_keeps_what_it_says_while_a_run_goes_on(
    start_editor: StartEditor, play: Play, script: Path
) -> None:
    play(act(script, 6), act(script, 6, seconds=60))
    editor = await start_editor(playing=True)
    uri = editor.open(script)
    await editor.until_ended()
    editor.save(uri)
    await editor.until(lambda: editor.state == "running")
    lenses = await editor.lenses(uri)
    assert lenses == [(2, "1 cause · see line 6 · running…"), (2, "1 graph · 1 break · 500 ms · running…")]


async def test_a_limit_is_named_where_there_may_be_more(start_editor: StartEditor, play: Play, script: Path) -> None:
    play(act(script, 6, outcome="budget", limit="memory", message="Stopped at 2 GB, the memory limit."))
    editor = await start_editor(playing=True)
    uri = editor.open(script)
    await editor.until_ended()
    await editor.until(lambda: editor.codes(uri) == ["GB0006"])
    assert "*The run was stopped at its limit of memory, so there may be more than is shown.*" in await editor.hover(
        uri, 5, 6
    )
    assert editor.file_state(uri).limit == "memory" and "the memory limit" in editor.file_state(uri).text
    play(act(script, 6, outcome="budget", limit="steady-state", message="Steady."))
    editor.save(uri)
    await editor.until_ended(2)
    await editor.until(lambda: editor.file_state(uri).limit == "steady-state")
    assert "limit" not in await editor.hover(uri, 5, 6), "a steady state has told all"


# --- when idle --------------------------------------------------------------------------------------------------------


def lanes(play: Path) -> list[str]:
    return [json.loads(line)["lane"] for line in Path(f"{play}.asked").read_text().splitlines()]


async def test_a_deep_run_follows_when_nothing_is_typed(start_editor: StartEditor, play: Play, script: Path) -> None:
    path = play(act(script, 6))
    editor = await start_editor(playing=True, options={"run": {"deepWhenIdle": 2.5}})
    uri = editor.open(script)
    await editor.until_ended()
    longest, last = 0.0, time.monotonic()
    for version in range(2, 16):  # typing puts it off, for longer than it would wait
        await asyncio.sleep(0.2)
        editor.change(uri, SCRIPT + "#" * (version % 2), version)
        longest, last = max(longest, time.monotonic() - last), time.monotonic()
    paused = longest > 2.0  # this machine has stood still: that was a user who was idle
    assert lanes(path) == ["fast"] or paused
    editor.change(uri, SCRIPT, 16)
    await editor.until_ended(2)
    assert lanes(path) == ["fast", "deep"] or paused
    await asyncio.sleep(3.0)
    assert lanes(path) == ["fast", "deep"] or paused, "once"


async def test_an_idle_user_with_an_edit_that_is_not_saved_gets_none(
    start_editor: StartEditor, play: Play, script: Path
) -> None:
    path = play(act(script, 6, seconds=2))
    editor = await start_editor(playing=True, options={"run": {"deepWhenIdle": 0.2}})
    uri = editor.open(script)
    await editor.until(lambda: Path(f"{path}.asked").exists())
    editor.change(uri, SCRIPT + "# edited\n")  # before the end of the run, from which the user is idle
    await editor.until_ended()
    await asyncio.sleep(0.6)
    assert lanes(path) == ["fast"]


async def test_a_save_takes_the_place_of_the_deep_run(start_editor: StartEditor, play: Play, script: Path) -> None:
    path = play(act(script, 6), act(script, 6, seconds=60), act(script, 6))
    editor = await start_editor(playing=True, options={"run": {"deepWhenIdle": 0.1}})
    uri = editor.open(script)
    await editor.until(lambda: Path(f"{path}.asked").exists() and lanes(path) == ["fast", "deep"])
    editor.change(uri, SCRIPT + "# edited\n")
    editor.save(uri)
    await editor.until(lambda: lanes(path)[:3] == ["fast", "deep", "fast"])
    await editor.until_ended(3)


async def test_without_the_setting_there_is_none(start_editor: StartEditor, play: Play, script: Path) -> None:
    path = play(act(script, 6))
    editor = await start_editor(playing=True)
    editor.open(script)
    await editor.until_ended()
    await asyncio.sleep(0.3)
    assert lanes(path) == ["fast"]
