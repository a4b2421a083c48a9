"""Runs a script, measures what it compiled, and keeps the measured time with the run."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import tempfile
import threading
from collections.abc import Callable, Sequence
from typing import Any

from irscope.driver.driver import RunSpec, execute
from irscope.driver.region_trials import compared_elsewhere
from irscope.findings.peak_memory import peak_memory
from irscope.findings.slow_lines import slow_lines, with_costs
from irscope.ir.kineto import TraceError, read_events
from irscope.ir.roofline import THIS_CPU, Peaks, peaks_of
from irscope.profiling.joining import Joined
from irscope.profiling.measuring import profile_of
from irscope.profiling.noise import is_clear, spread_of
from irscope.profiling.profile import CudaGraphs, GraphPool, MeasuredProgram, Profile, RecordedAgain
from irscope.profiling.regions import regions_of, seconds_of
from irscope.profiling.step_memory import WrongFacts, step_memory
from irscope.profiling.timeline import timeline
from irscope.protocol import Message, Outcome, OutcomeKind, Progress, ScriptEnded, from_json, to_json
from irscope.runner import kept_regions
from irscope.runner.profiling import TRACE
from irscope.runner.rounds import READY
from irscope.store.store import Store
from irscope.vocabulary.visible import bounded

_MOST_BYTES = 100_000_000


class NotMeasured(Exception):
    """The run has no measured time; the message says why.

    Args:
        run, outcome: ID and outcome of the run, which stays in the store.
    """

    def __init__(self, why: str, run: str = "", outcome: Outcome | None = None) -> None:
        super().__init__(why)
        self.run, self.outcome = run, outcome


def profiled(
    spec: RunSpec,
    store: Store,
    *,
    on_start: Callable[[str], None] = lambda run: None,
    on_message: Callable[[Message], None] = lambda message: None,
    on_output: Callable[[str, str], None] | None = None,
    stdout: int | None = None,
    cancel: threading.Event | None = None,
    against: Sequence[str] = (),
    without_breaks: bool = False,
) -> tuple[str, Outcome, Profile]:
    """Runs a script whose ``spec.profile`` is at least 1; the other parameters are those of `execute`.

    Args:
        against: Names of pipelines through which each graph between breaks is timed, too.
        without_breaks: Whether the dearest breaks and recompilations are timed against the script with a fix.

    Raises:
        NotMeasured: The script failed, compiled nothing, or what it compiled could not be called again.  The run stays
            in the store.
    """

    def step(text: str) -> None:
        on_message(Progress(text, "measuring"))

    def tell(message: Message) -> None:
        on_message(message)
        if isinstance(message, ScriptEnded):
            step("measuring what was compiled")

    with tempfile.TemporaryDirectory(prefix="irscope-profile-") as folder:
        spec = dataclasses.replace(spec, rounds=folder)
        if against:
            os.mkdir(os.path.join(folder, kept_regions.FOLDER))
        run, outcome = execute(
            spec, store, on_start=on_start, on_message=tell, on_output=on_output, stdout=stdout, cancel=cancel
        )  # fmt: skip
        if outcome.kind is not OutcomeKind.COMPLETED:
            raise NotMeasured(outcome.message, run, outcome)
        try:
            found = _measured(folder, store, run, spec.profile)
        except NotMeasured as error:
            error.run, error.outcome = run, outcome
            raise
        if against:
            regions = compared_elsewhere(
                spec, found.regions, _facts(os.path.join(folder, READY)).get("regions"),
                os.path.join(folder, kept_regions.FOLDER), against, on_step=step, cancel=cancel,
            )  # fmt: skip
            found = dataclasses.replace(found, regions=regions)
        if without_breaks and (found.breaks or found.recompiled):
            from irscope.driver.break_trials import breaks_removed  # here: it brings all of `irscope fix`

            found = breaks_removed(spec, found, store.report(run), on_step=step, cancel=cancel)
        if against or without_breaks:
            store.put_profile(run, to_json(found))
        return run, outcome, found


def _measured(folder: str, store: Store, run: str, calls: int) -> Profile:
    """The profile of what the run's process left in a folder; it is kept in the store."""
    facts = _facts(os.path.join(folder, READY))
    programs = [program_of(one) for one in facts.get("programs", ()) if isinstance(one, dict)]
    if not programs:
        raise NotMeasured("Nothing to measure: the script called no program that it had passed to torch.compile.")
    if all(one.why_not for one in programs):
        raise NotMeasured(f"Nothing was measured: {programs[0].why_not}")
    try:
        found = timeline(read_events(os.path.join(folder, TRACE)), calls)
    except (OSError, TraceError) as error:
        raise NotMeasured(f"The profiler's trace cannot be read: {error}") from error
    measured = _measured_peaks(facts.get("peaks"))
    peaks = peaks_of(store.device_of(run)) or measured
    report = store.report(run)
    profile = profile_of(found, Joined(store, report, peaks), report, programs, peaks.name if peaks else "")
    profile = dataclasses.replace(
        profile,
        cuda_graphs=with_facts(profile.cuda_graphs, facts.get("cuda_graphs")),
        regions=regions_of(facts.get("regions"), report),
        cpu_peaks=(measured.bandwidth, measured.flops["float32"]) if measured else None,
    )
    if facts.get("memory"):
        try:
            profile = dataclasses.replace(profile, memory=step_memory(facts["memory"], store, report))
        except WrongFacts as error:
            profile = dataclasses.replace(profile, warnings=(*profile.warnings, bounded(str(error))))
    store.put_profile(run, to_json(profile))
    memory = peak_memory(profile.memory, report) if profile.memory is not None else ()
    for finding in (*slow_lines(profile, report), *with_costs(profile, report), *memory):
        store.put_finding(run, finding)
    return profile


def _facts(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.loads(file.read(_MOST_BYTES))
    except (OSError, ValueError) as error:
        raise NotMeasured("The script ended its process before anything was measured.") from error
    return found if isinstance(found, dict) else {}


def program_of(facts: dict[str, Any]) -> MeasuredProgram:
    """What the run's process wrote of a program; it is not trusted."""
    line = facts.get("line")
    samples, eager = seconds_of(facts.get("samples")), seconds_of(facts.get("eager_samples"))
    return MeasuredProgram(
        bounded(str(facts.get("function", "")), 500),
        bounded(str(facts.get("file", "")), 4096),
        line if isinstance(line, int) else 0,
        None,
        _number(facts.get("plain_seconds")),
        facts.get("backward") is True,
        bounded(str(facts.get("why_not", ""))),
        samples,
        _number(facts.get("eager_seconds")),
        spread=spread_of(samples),
        eager_spread=spread_of(eager),
        is_clear=is_clear(samples, eager),
        is_foreign=facts.get("is_foreign") is True,
        put_back=tuple(bounded(str(place), 100) for place in facts.get("put_back") or () if isinstance(place, str)),
        compiled_again=bounded(str(facts.get("compiled_again", ""))),
    )


def with_facts(graphs: CudaGraphs, facts: object) -> CudaGraphs:
    """Adds what the run's process wrote about them, which is not trusted."""
    if not isinstance(facts, dict):
        return graphs
    try:
        again = tuple(from_json(RecordedAgain, one) for one in facts["again"])
        pools = tuple(from_json(GraphPool, one) for one in facts["pools"])
        return dataclasses.replace(graphs, recordings=int(facts["recordings"]), again=again, pools=pools)
    except (KeyError, ValueError, TypeError, RecursionError):
        return graphs


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) and value >= 0 else None


def _measured_peaks(facts: object) -> Peaks | None:
    """What the process reached on its CPU."""
    if not isinstance(facts, dict):
        return None
    moved, worked = _number(facts.get("bandwidth")), _number(facts.get("flops"))
    if not moved or not worked:
        return None
    return Peaks(THIS_CPU, moved, {"float32": worked})
