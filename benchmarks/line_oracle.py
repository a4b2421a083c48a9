"""The dearest lines of ten models by `irscope profile`, against lines whose kernels were timed by hand.

    .venv/bin/python benchmarks/line_oracle.py [--rounds N] [--json FILE] [MODEL…]

The models are the scripts in `tests/plain/profiles/models`, on the device that is here. For each it prints

- the step by `irscope profile` and by a plain loop in a process without irscope, which take turns N times (3), and the median ratio.
  The goals are 1.05 on a CPU and 1.03 on a GPU;
- the shares of kernel time and of the step that have an owner. The goals are 0.98 and 0.95;
- whether the output code calls the same kernels as without irscope, and on a GPU whether the same kernels run there;
- the five dearest lines of both, with their microseconds (`kernels_by_hand.py` says how the other side is timed).

Lines are *the same* if both sides have the same five, or if those that differ take within 15 % of the fifth. The load of the machine is
printed at the beginning and at the end. With --json all figures go into a file.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import irscope.driver.profiling as driver
from irscope.driver.driver import RunSpec
from irscope.ir.kineto import Event, read_events
from irscope.pipelines.registry import role_of
from irscope.profiling.profile import Profile
from irscope.profiling.timeline import STEP
from irscope.store.store import Store
from irscope.vocabulary.stages import Role
from kernels_by_hand import calls_in

MODELS = Path(__file__).resolve().parent.parent / "tests" / "plain" / "profiles" / "models"
_BY_HAND = Path(__file__).resolve().parent / "kernels_by_hand.py"
_TOP, _TIE = 5, 0.15
_CALLS = 10


def main() -> None:
    """Compares the models one after the other."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--json", metavar="FILE")
    options.add_argument("models", nargs="*", metavar="MODEL")
    given = options.parse_args()
    found: dict[str, Any] = {}
    print("load", os.getloadavg()[0])
    for name in given.models or sorted(path.stem for path in MODELS.glob("*.py")):
        with tempfile.TemporaryDirectory() as folder:
            try:
                found[name] = _compared(name, Path(folder), given.rounds)
            except (RuntimeError, driver.NotMeasured) as error:
                found[name] = {"error": str(error)}
        print("\n".join(_text(name, found[name])), flush=True)
        if given.json:
            Path(given.json).write_text(json.dumps(found, indent=1))
    print("load", os.getloadavg()[0])


def _compared(name: str, folder: Path, rounds: int) -> dict[str, Any]:
    script = str(MODELS / f"{name}.py")
    steps: list[float] = []
    loops: list[float] = []
    for _ in range(max(1, rounds)):
        profile, calls, kernels = _profiled(script, folder)
        backward = any(one.backward for one in profile.programs)
        plain = _by_hand("plain", script, backward)
        steps.append(profile.step_seconds)
        loops.append(plain["seconds"])
    hand = _by_hand("lines", script, backward)
    mine = sorted(((f"{one.file}:{one.line}", one.seconds) for one in profile.lines), key=lambda one: -one[1])
    theirs = [(str(line), float(seconds)) for line, seconds in hand["lines"]]
    return {
        "step": statistics.median(steps),
        "plain": statistics.median(loops),
        "ratio": statistics.median(a / b for a, b in zip(steps, loops, strict=True)),
        "profiled": profile.profiled_seconds,
        "owned_device": profile.owned_device_seconds / max(profile.device_seconds, 1e-12),
        "owned_step": profile.owned_seconds / max(profile.step_seconds, 1e-12),
        "same_calls": calls == plain["calls"],
        "calls": [calls, plain["calls"]],
        "same_kernels": kernels == _whole(plain["kernels"]) if plain["kernels"] else None,
        "kernels": [kernels, _whole(plain["kernels"])],
        "lines": mine,
        "by_hand": theirs,
        "by_hand_without_line": hand["unowned"],
        "verdict": verdict(mine, theirs),
    }


def verdict(mine: list[tuple[str, float]], theirs: list[tuple[str, float]]) -> str:
    """Whether the dearest lines are the same; both sides are sorted."""
    a, b = [line for line, _ in mine[:_TOP]], [line for line, _ in theirs[:_TOP]]
    if a == b:
        return "the same, in the same order"
    if set(a) == set(b):
        return "the same, in another order"
    known = dict(theirs)
    fifth = theirs[min(_TOP, len(theirs)) - 1][1] if theirs else 0.0
    other = [line for line in {*a, *b} if (line in a) != (line in b)]
    if all(abs(known.get(line, 0.0) - fifth) <= _TIE * fifth for line in other):
        return "the same but for lines that take as much as the fifth"
    return f"DIFFERENT: {', '.join(sorted(os.path.basename(line) for line in other))}"


def _profiled(script: str, folder: Path) -> tuple[Profile, list[list[str]], dict[str, float]]:
    """The profile, the calls in the output code, and the kernels on the device in a step."""
    kernels: Counter[str] = Counter()
    steps = [0]

    def seen(path: str) -> Iterator[Event]:
        for event in read_events(path):
            steps[0] += event.name.startswith(STEP) and event.category == "user_annotation"
            kernels[event.name] += event.category in ("kernel", "gpu_memcpy", "gpu_memset")
            yield event

    driver.read_events = seen  # type: ignore[assignment, attr-defined]
    spec = RunSpec(
        script=script, args=(), python=sys.executable, cwd=str(folder), symbolic_trace=False, profile=_CALLS
    )  # fmt: skip
    with Store(str(folder / "runs.db")) as store:
        run, _, profile = driver.profiled(spec, store)
        report = store.report(run)
        texts = [
            store.stage_text(run, stage.id)
            for compile in report.compiles
            for stage in compile.stages
            if role_of(stage.name) is Role.CODE
        ]
    each = {name: count / max(1, steps[0]) for name, count in kernels.items() if count}
    return profile, sorted(calls_in(text) for text in texts), _whole(each)


def _whole(kernels: dict[str, float]) -> dict[str, float]:
    """Counts of a step; what ran once beside the steps does not count."""
    return {name: round(count) for name, count in sorted(kernels.items()) if round(count)}


def _by_hand(what: str, script: str, backward: bool) -> dict[str, Any]:
    command = [sys.executable, str(_BY_HAND), what, script, *(["--backward"] if backward else [])]
    done = subprocess.run(command, capture_output=True, text=True, cwd=os.path.dirname(script))
    if done.returncode:
        raise RuntimeError(f"{what} by hand failed: {done.stderr.strip()[-800:]}")
    return dict(json.loads(done.stdout.strip().split("\n")[-1]))


def _text(name: str, found: dict[str, Any]) -> list[str]:
    if "error" in found:
        return ["", f"{name}: {found['error']}"]
    kernels = {True: "the same", False: "NOT the same", None: "not on a GPU"}[found["same_kernels"]]
    lines = [
        "",
        f"{name}: step {1e6 * found['step']:.1f} µs, plain loop {1e6 * found['plain']:.1f} µs, ratio {found['ratio']:.3f}; "
        f"with the profiler {1e6 * found['profiled']:.1f} µs",
        f"  owned: {found['owned_device']:.3f} of kernel time, {found['owned_step']:.3f} of the step",
        f"  calls in output code {'the same' if found['same_calls'] else 'NOT the same'}, kernels on the device {kernels}",
        f"  dearest lines: {found['verdict']}",
    ]
    if found["same_kernels"] is False:
        mine, theirs = found["kernels"]
        lines += [f"    {key[:90]}: {mine.get(key, 0)} with, {theirs.get(key, 0)} without"
                  for key in sorted({*mine, *theirs}) if mine.get(key) != theirs.get(key)]  # fmt: skip
    mine, theirs = dict(found["lines"]), dict(found["by_hand"])
    wanted = dict.fromkeys([line for side in ("lines", "by_hand") for line, _ in found[side][:_TOP]])
    for line in wanted:
        lines.append(
            f"    {os.path.basename(line):28} irscope {1e6 * mine.get(line, 0):9.1f} µs  by hand {1e6 * theirs.get(line, 0):9.1f} µs"
        )
    return lines


if __name__ == "__main__":
    main()
