"""Slow lines: found in recordings of a GPU where a reason is known, and nowhere else."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from facts import a_finding, a_range
from irscope.driver.opened_profile import opened
from irscope.findings.slow_lines import slow_lines, with_costs
from irscope.profiling.break_words import BreakCost
from irscope.profiling.profile import CudaGraphs, Gap, MeasuredKernel, MeasuredLine, Profile
from irscope.protocol import Finding, Origin, Outcome, OutcomeKind, Report, Severity
from irscope.store.store import Store

RECORDED = Path(__file__).parent / "profiles"
FILE = "/w/train.py"
REPORT = Report(1, "r", FILE, None, Outcome(OutcomeKind.COMPLETED, 0, "", 1.0), (), (), (), ())


def found_in(name: str, folder: Path) -> list[tuple[int, str]]:
    path = folder / "runs.db"
    path.write_bytes(gzip.decompress((RECORDED / f"{name}.db.gz").read_bytes()))
    with Store(str(path)) as store:
        report = store.report(store.find_run())
        profile = opened(str(RECORDED / f"{name}.json.gz"), store, report.run)
    return sorted((one.range.start.line, one.code.removeprefix("slow-line-")) for one in slow_lines(profile, report))


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("mlp", [(11, "tf32"), (12, "tf32")]),
        ("gpt_train", [(15, "tf32"), (17, "tf32"), (18, "launches"), (20, "tf32")]),
        ("break", [(18, "launches"), (23, "tf32")]),
        ("overhead", [(15, "tf32"), (17, "tf32"), (20, "tf32")]),  # its CUDA graph is replayed
        ("flex", [(10, "missed-fusion")]),
        ("skip", []),
        ("bert", []),  # all of its lines are a library's
    ],
)
def test_lines_of_a_gpu_are_slow_for_a_reason(tmp_path: Path, name: str, wanted: list[tuple[int, str]]) -> None:
    assert found_in(name, tmp_path) == wanted


def a_profile(**changes: Any) -> Profile:
    """A step of a millisecond, of which one line takes 400 µs, ten times what is possible."""
    kernel = MeasuredKernel("triton_poi_fused_add_0", "0/0/output-code", 4e-4, 1, (Origin(FILE, 5),), 4e-5, "memory")
    line = MeasuredLine(FILE, 5, 4e-4, 0.0, 4e-5, 1, (kernel.name,), "memory")
    facts: dict[str, Any] = {
        "run": "r", "steps": 20, "device_seconds": 4e-4, "step_seconds": 1e-3, "owned_seconds": 1e-3, "lines": (line,),
        "kernels": (kernel,), "gaps": (), "cuda_graphs": CudaGraphs(0, 0), "profiled_seconds": 1e-3, "idle_device_seconds": 1e-4,
    }  # fmt: skip
    return Profile(**{**facts, **changes})


def with_kernel(name: str) -> Profile:
    profile = a_profile()
    return replace(profile, kernels=(replace(profile.kernels[0], name=name),))


def codes(profile: Profile, *findings: Finding) -> list[str]:
    return [one.code for one in slow_lines(profile, replace(REPORT, findings=findings))]


def at(kind: str, line: int) -> Finding:
    return a_finding(kind=kind, file=FILE, range=a_range(line, 0, line, 9), related=())


def test_a_line_without_a_known_reason_has_no_finding() -> None:
    assert codes(a_profile()) == []
    assert codes(a_profile(step_seconds=0.0)) == []


def test_a_kernel_that_only_moves_values_is_a_reason() -> None:
    assert codes(with_kernel("triton_poi_fused_clone_transpose_0")) == ["slow-line-layout"]
    assert codes(with_kernel("triton_poi_fused_clone_add_0")) == []
    near = with_kernel("triton_poi_fused_clone_transpose_0")
    line = replace(near.lines[0], bound_seconds=3e-4)
    assert codes(replace(near, lines=(line,))) == [], "it is near what is possible"
    line = replace(near.lines[0], bound_seconds=0.0)
    assert codes(replace(near, lines=(line,))) == [], "what is possible is not known"
    assert codes(replace(near, step_seconds=1.0)) == [], "nothing to gain"


def test_what_the_run_found_is_a_reason_where_it_costs_time() -> None:
    sync = at("host-sync", 7)
    assert codes(a_profile(gaps=(Gap("waiting", 2e-4, ""),)), sync) == ["slow-line-host-sync"]
    assert codes(a_profile(gaps=(Gap("waiting", 1e-5, ""),)), sync) == []
    assert codes(a_profile(gaps=(Gap("waiting", 2e-4, ""),))) == [], "what is waited for is not known"
    assert codes(a_profile(gaps=(Gap("waiting", 2e-4, ""),), idle_device_seconds=None), sync) == [], (
        "a CPU has no device"
    )
    storm = at("recompile-limit", 3)
    assert codes(a_profile(gaps=(Gap("unknown", 3e-4, ""),)), storm) == ["slow-line-recompilation"]
    assert codes(a_profile(), storm) == [], "in the steady state it costs nothing"
    fusion = at("missed-fusion", 5)
    assert codes(a_profile(), fusion) == ["slow-line-missed-fusion"]


def test_launches_are_a_reason_where_the_device_waits_for_them() -> None:
    gaps = (
        Gap("launch", 2e-4, f"{FILE}:3"),
        Gap("generated wrapper", 1e-4, f"{FILE}:9"),
        Gap("launch", 5e-4, "elsewhere"),
    )
    small = a_profile(gaps=gaps, idle_device_seconds=7e-4)
    [one] = slow_lines(small, REPORT)
    assert (one.code, one.range.start.line) == (
        "slow-line-launches",
        3,
    ) and "300 µs of a step of 1 ms (30 %)" in one.message
    assert codes(replace(small, cuda_graphs=CudaGraphs(0, 1))) == []
    assert codes(replace(small, idle_device_seconds=4e-4)) == []


def test_a_file_has_at_most_five() -> None:
    one = with_kernel("triton_poi_fused_clone_transpose_0")
    rows = range(1, 10)
    lines = tuple(replace(one.lines[0], line=row, seconds=4e-4 + 1e-6 * row) for row in rows)
    kernels = tuple(replace(one.kernels[0], origins=(Origin(FILE, row),)) for row in rows)
    found = slow_lines(replace(one, lines=lines, kernels=kernels), REPORT)
    assert sorted(each.range.start.line for each in found) == [5, 6, 7, 8, 9], "those that lose the most"


def test_a_break_that_pytorch_asks_for_says_what_it_takes() -> None:
    grey = replace(at("graph-break", 5), code="GB0098", severity=Severity.HINT, message="On purpose.")
    other = replace(at("graph-break", 7), code="GB0098")
    costs = tuple(BreakCost(FILE, line, "GB0098", 4e-5, 0.0, 1e-5, 3e-5) for line in (5, 7))
    report = replace(REPORT, findings=(grey, other))
    (told,) = with_costs(a_profile(breaks=costs), report)
    assert told.message.startswith(
        "On purpose. It takes at least 40 µs of a step by the gaps around it (guards 10 µs, "
    )
    assert told.cause == grey.cause, "it replaces the finding"
    assert with_costs(a_profile(), report) == [], "nothing was measured"
