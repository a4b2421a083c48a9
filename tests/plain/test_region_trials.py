"""Graphs between breaks through other pipelines: of rounds by hand, and of files that a run's process wrote or did not."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path
from typing import Any

import pytest
from facts import a_finding
from irscope.cli.measured import profile_lines
from irscope.cli.profile_arguments import _pipelines
from irscope.cli.text import Paint
from irscope.driver import region_trials
from irscope.driver.driver import RunSpec
from irscope.driver.region_trials import compared_elsewhere
from irscope.driver.rounds import Measured
from irscope.profiling.noise import Spread
from irscope.profiling.profile import CudaGraphs, Profile
from irscope.profiling.regions import MeasuredRegion
from irscope.protocol import CaptureGap, Severity
from irscope.store.store import Store
from irscope.vocabulary.lanes import Lane

SPEC = RunSpec(script="/w/train.py", args=("--fast",), profile=10, overlays={"/w/a.py": "x"})
SPREAD = Spread(1e-4, 1e-4, 1e-4, 20)


def a_region(name: str) -> MeasuredRegion:
    return MeasuredRegion(name, "f", "/w/train.py", 7, False, SPREAD, SPREAD, False, None, None)


def side(seconds: dict[int, float | None], why: str = "") -> Measured:
    """Of the programs whose graphs have these numbers."""
    programs = [{"file": f"/t/Region{number}.py", "why_no_seconds": why} for number in seconds]
    rounds = [[{"seconds": one and one * (1 + 0.002 * (n % 5))} for one in seconds.values()] for n in range(18)]
    return Measured(SPEC, programs=programs, rounds=rounds)


def compared(
    monkeypatch: pytest.MonkeyPatch, folder: Path, told: Any, sides: list[Measured], files: int = 2
) -> tuple[list[Any], list[RunSpec]]:
    specs: list[RunSpec] = []

    def measured(given: list[RunSpec], *_: Any, **__: Any) -> list[Measured]:
        specs.extend(given)
        return sides

    monkeypatch.setattr(region_trials, "measured", measured)
    for number in range(files):
        (folder / f"{number}.pt").touch()
    regions = [a_region("0/0"), a_region("1/0")]
    return [
        one.elsewhere for one in compared_elsewhere(SPEC, regions, told, str(folder), ["onnx", "tvm"])
    ], specs  # fmt: skip


KEPT = [{"kept": 0}, {"kept": 1}]


def test_each_graph_is_timed_beside_inductor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sides = [side({0: 1e-4, 1: 2e-4}), side({0: 0.5e-4, 1: 2.01e-4}), side({1: 4e-4})]
    [[onnx, tvm], [onnx_2, tvm_2]], specs = compared(monkeypatch, tmp_path, KEPT, sides)
    assert [(one.pipeline, one.script, one.args, one.overlays, one.profile) for one in specs] == [
        (name, str(tmp_path / "regions.py"), (), {}, 0) for name in ("inductor", "onnx", "tvm")
    ]
    assert (tmp_path / "regions.py").read_text() == region_trials.SCRIPT.read_text()
    assert onnx.is_clear and onnx.seconds.median == pytest.approx(0.5e-4, rel=0.01)
    assert onnx.inductor.median == pytest.approx(1e-4, rel=0.01)
    assert onnx_2.is_clear is False, "half of a percent is noise"
    assert (tvm.seconds, tvm.why_not) == (None, "Its graph could not be made again in another process.")
    assert tvm_2.seconds.median == pytest.approx(4e-4, rel=0.01), "it is found though the first one is missing"


def test_what_cannot_be_timed_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    refused = side({0: None, 1: None}, "ExportError: no")
    gone = Measured(SPEC, problem="The run did not start.")
    [[onnx, tvm], _], _ = compared(monkeypatch, tmp_path, KEPT, [side({0: 1e-4, 1: 1e-4}), refused, gone])
    assert (onnx.why_not, tvm.why_not) == ("ExportError: no", "The run did not start.")


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ([{"why_not_kept": "Its graph cannot be written: no"}] * 2, "Its graph cannot be written: no"),
        ([{"kept": "../../etc/passwd"}, {"kept": 7}], "Its graph was not kept."),
        ([{"kept": True}], "Its graph was not kept."),
        ({"kept": 0}, "Its graph was not kept."),
        (None, "Its graph was not kept."),
    ],
)
def test_what_the_process_says_of_its_files_is_not_trusted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, told: Any, why: str
) -> None:
    found, specs = compared(monkeypatch, tmp_path, told, [])
    assert specs == [], "nothing runs"
    assert {one.why_not for each in found for one in each} == {why} and len(found) == 2


def test_the_terminal_has_a_line_for_each_pipeline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sides = [side({0: 1e-4, 1: 1e-4}), side({0: 2e-4, 1: 1e-4}), side({0: None, 1: None}, "no lowering of sort")]
    found, _ = compared(monkeypatch, tmp_path, KEPT, sides)
    regions = (dataclasses.replace(a_region("0/0"), elsewhere=found[0]),)
    profile = Profile("", 1, 0.0, 1e-4, 0.0, (), (), (), CudaGraphs(0, 0), regions=regions)
    text = "\n".join(profile_lines(profile, Paint(io.StringIO())))
    assert "Between graph breaks: 1 graph, each called alone" in text
    assert "    through onnx 201 µs (quartiles" in text and "where Inductor took 100 µs" in text
    assert "): 2 times as slow" in text and "    through tvm: not measured: no lowering of sort" in text


@pytest.mark.parametrize("text", ["", ",", "inductor", "onnx,inductor", "nothing"])
def test_only_other_pipelines_can_be_named(text: str) -> None:
    with pytest.raises(Exception, match=r"Name others than inductor|nothing"):
        _pipelines(text)
    assert _pipelines("onnx, tvm,onnx") == ("onnx", "tvm")


def test_what_a_run_says_against_a_graph_is_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with Store(str(path)) as store:
        run = store.create_run("/t/regions.py", (), Lane.DEEP, "")
        store.put_finding(
            run, a_finding(file="/t/Region1.py", message="No lowering of sort.", severity=Severity.WARNING)
        )
        store.put_gap(run, CaptureGap("the stages of 2/0", "no kernel for cond"))
        reasons = region_trials._reasons(store, run)
    refused = side({0: None, 1: None}, "forward runs as Python: see the findings and gaps")
    sides = [region_trials._Side(side({0: 1e-4, 1: 1e-4}), {}), region_trials._Side(refused, reasons)]
    told = [region_trials._elsewhere("onnx", 1, region_trials._Kept(number), sides).why_not for number in (0, 1)]
    assert told == ["the stages of 2/0: no kernel for cond", "No lowering of sort."]
