"""Measured time on the code: lenses, hovers and marks of recordings of a GPU, in the text as it is now."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from irscope.driver.profiling import program_of
from irscope.ir.kineto import read_events
from irscope.ir.roofline import peaks_of
from irscope.profiling.joining import Joined
from irscope.profiling.measuring import profile_of
from irscope.profiling.timeline import timeline
from irscope.protocol import Finding, Lane, Position, Range, Severity, to_json
from irscope.store.store import Store
from irscope_server.base.archive import Archive
from irscope_server.base.settings import Settings
from irscope_server.base.texts import Texts, file_key, split_lines
from irscope_server.language.time_hovers import time_text
from irscope_server.language.time_lenses import time_lenses
from irscope_server.language.views import Views
from irscope_server.running.measured import Measured, Profiles
from irscope_server.running.results import Ended, Results

RECORDED = Path(__file__).parent.parent / "profiles"
SCRIPT = file_key("/tmp/g/break.py")


def recorded(folder: Path) -> Path:
    """The store of a recording, with its profile in it."""
    path = folder / "runs.db"
    path.write_bytes(gzip.decompress((RECORDED / "break.db.gz").read_bytes()))
    trace = RECORDED / "break.json.gz"
    programs = [program_of(one) for one in json.loads(gzip.decompress(trace.read_bytes()))["irscope"]["programs"]]
    with Store(str(path)) as store:
        report = store.report(store.find_run())
        peaks = peaks_of(store.device_of(report.run))
        found = timeline(read_events(str(trace)))
        profile = profile_of(found, Joined(store, report, peaks), report, programs, peaks.name if peaks else "")
        store.put_profile(report.run, to_json(profile))
        if not store.sources(report.run):
            store.put_source(report.run, SCRIPT, (RECORDED / "models" / "break.py").read_text())
    return path


class Desk:
    """An editor with one file, and the store of the recording."""

    encoding = "utf-16"

    def __init__(self, store: Path) -> None:
        self.archive = Archive(str(store))
        self.text = (RECORDED / "models" / "break.py").read_text()
        self.texts = Texts(lambda key: self.text if key == SCRIPT else None)
        self.views = Views(Results(), self.texts)
        self.settings = Settings()
        self.profiles = Profiles(self, SimpleNamespace(plans={}))  # type: ignore[arg-type]

    def path_of(self, uri: str) -> str | None:
        return uri

    def uri_of(self, path: str) -> str:
        return path

    def edit(self, old: str, new: str) -> None:
        assert old in self.text
        self.text = self.text.replace(old, new, 1)
        self.texts.changed()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("measured"))


async def lenses(desk: Any) -> dict[int, str]:
    found = time_lenses(desk, SCRIPT, await desk.profiles.touching(SCRIPT))
    return {one.range.start.line + 1: one.command.title for one in found if one.command}


async def test_lines_and_functions_tell_their_time_and_bound(store: Path) -> None:
    found = await lenses(Desk(store))
    assert found[21] == "55.8 µs of 547 µs (10 %), bound 2.5 µs, memory-bound"
    assert "memory-bound" in found[23] or "compute-bound" in found[23]
    functions = {line: title for line, title in found.items() if "kernels" in title}
    assert len(functions) == 1, "the graphs after the breaks belong to the function, too"
    assert "launch" in next(iter(functions.values()))


async def test_lenses_move_with_edits_and_say_that_they_are_older(store: Path) -> None:
    desk = Desk(store)
    before = await lenses(desk)
    desk.edit("import torch", "# new\nimport torch")
    after = await lenses(desk)
    assert set(after) == {line + 1 for line in before}
    assert all(title.endswith(" · before your edit") for title in after.values())
    line = desk.text.split("\n")[21]
    desk.edit(line, line + " * 2")
    assert 22 not in await lenses(desk), "the line is another one now"


async def test_the_setting_turns_lenses_off(store: Path) -> None:
    desk = Desk(store)
    desk.settings = replace(desk.settings, measured_time=False)
    assert await lenses(desk) == {}


async def test_a_hover_has_kernels_rates_and_why_they_are_not_fused(store: Path) -> None:
    desk = Desk(store)
    measured = await desk.profiles.touching(SCRIPT)
    assert measured is not None
    text = time_text(desk, SCRIPT, 20, measured)  # type: ignore[arg-type]
    assert text.startswith("**Measured** 55.8 µs of 547 µs (10 %), bound 2.5 µs, memory-bound")
    assert "| `triton_per_fused_sort_0` | 35.5 µs | 1 | 4.19 MB | 118 GB/s | 1.25 µs memory |" in text
    assert "H100" in text and "fused further" not in text
    refused = Finding(
        "missed-fusion", "missed-fusion", Severity.HINT, "It is <b>not</b> fused.", "", (), None, SCRIPT,
        Range(Position(21, 0), Position(21, 5)), 1, (), (),
    )  # fmt: skip
    report = replace(measured.ended.report, findings=(refused,))
    text = time_text(desk, SCRIPT, 20, Measured(replace(measured.ended, report=report), measured.profile))  # type: ignore[arg-type]
    assert "Why it is not fused further:" in text and r"\<b\>" in text
    assert time_text(desk, SCRIPT, 0, measured) == ""  # type: ignore[arg-type]


async def test_a_run_that_ends_brings_its_profile_and_files_without_one_have_none(store: Path) -> None:
    desk = Desk(store)
    assert await desk.profiles.touching(file_key("/w/other.py")) is None
    known = await desk.profiles.touching(SCRIPT)
    assert known is not None and known.ended.run
    lines: Sequence[str] = split_lines(desk.text)
    newer = Ended(SCRIPT, Lane.DEEP, "", known.ended.report, {SCRIPT: lines},
                  profile=replace(known.profile, step_seconds=2 * known.profile.step_seconds))  # fmt: skip
    desk.profiles.remember(SCRIPT, newer)
    assert (await lenses(desk))[21].startswith("55.8 µs of 1.09 ms (5.1 %)")
