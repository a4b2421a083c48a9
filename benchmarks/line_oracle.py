"""The dearest lines of ten models by `irscope profile`, against lines whose kernels were timed by hand.

    .venv/bin/python benchmarks/line_oracle.py [--rounds N] [--jobs N] [--seconds N] [--json FILE] [MODEL…]

The models are the scripts in `tests/plain/profiles/models`, on the device that is here. Processes of several models (--jobs) compile at the
same time; when all of them have compiled they are measured one after the other (`turns.py`). For each model it prints

- the step by `irscope profile`, timed without the profiler, and by a plain loop in a process without irscope, which take turns
  N times (2), and each ratio. The goals are 1.05 on a CPU and 1.03 on a GPU. With it the step while the profiler ran;
- the shares of kernel time and of the step that have an owner, and the gaps that have none. The goals are 0.98 and 0.95;
- whether the output code calls the same kernels as without irscope, and on a GPU whether the same kernels run there;
- the five dearest lines of both, with their microseconds (`kernels_by_hand.py` says how the other side is timed).

Lines are *the same* if both sides have the same five, or if those that differ take within 15 % of the fifth. The load of the machine is
printed at the beginning and at the end. With --json all figures go into a file. After --seconds everything ends.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import irscope.driver.profiling as driver
import turns
from irscope.driver.driver import RunSpec
from irscope.ir.kineto import Event, read_events
from irscope.pipelines.registry import role_of
from irscope.profiling.timeline import STEP
from irscope.store.store import Store
from irscope.vocabulary.stages import Role
from kernels_by_hand import calls_in

MODELS = Path(__file__).resolve().parent.parent / "tests" / "plain" / "profiles" / "models"
_HERE = Path(__file__).resolve().parent
_TOP, _TIE = 5, 0.15
_CALLS = 10


def main() -> None:
    """Compares the models, several at a time."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=2)
    options.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1) // 3))
    options.add_argument("--seconds", type=int, default=3600)
    options.add_argument("--json", metavar="FILE")
    options.add_argument("--profile", metavar="SCRIPT", help=argparse.SUPPRESS)
    options.add_argument("models", nargs="*", metavar="MODEL")
    given = options.parse_args()
    if given.profile:
        print(json.dumps(_profiled(given.profile)))
        return
    signal.signal(signal.SIGALRM, lambda *_: sys.exit("out of time"))
    signal.alarm(given.seconds)
    found: dict[str, Any] = {}
    start = time.monotonic()
    print("load", os.getloadavg()[0], flush=True)
    names = given.models or sorted(path.stem for path in MODELS.glob("*.py"))
    for at in range(0, len(names), given.jobs):
        for name, one in _compared(names[at : at + given.jobs], given.rounds):
            found[name] = one
            print("\n".join(_text(name, one)), flush=True)
            if given.json:
                Path(given.json).write_text(json.dumps(found, indent=1))
        print(f"\n{time.monotonic() - start:.0f} s", flush=True)
    print("load", os.getloadavg()[0])


class Work:
    """A process whose last line of output is JSON."""

    def __init__(self, folder: Path, name: str, command: Sequence[str]) -> None:
        env = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        env |= {turns.FOLDER: str(folder), turns.NAME: name, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
        env.setdefault("PYTHONPYCACHEPREFIX", os.path.join(tempfile.gettempdir(), f"bytecode-{os.getuid()}"))
        self._out = (folder / f"{name}.out").open("w+")
        self._errors = (folder / f"{name}.err").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, *command],
            stdout=self._out,
            stderr=self._errors,
            cwd=folder,
            env=env,
            start_new_session=True,
        )

    def has_ended(self) -> bool:
        """Whether it has nothing to do any more."""
        return self.process.poll() is not None

    def result(self) -> dict[str, Any]:
        """What it printed.

        Raises:
            RuntimeError: It failed.
        """
        status = self.process.wait()
        self._out.seek(0)
        self._errors.seek(0)
        if status:
            raise RuntimeError(f"{' '.join(map(str, self.process.args[1:4]))}: {self._errors.read().strip()[-800:]}")  # type: ignore[index]
        return dict(json.loads(self._out.read().strip().split("\n")[-1]))

    def end(self) -> None:
        """With all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


def _compared(models: Sequence[str], rounds: int) -> Iterator[tuple[str, dict[str, Any]]]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary)
        shutil.copy(turns.__file__, folder)
        work: dict[str, Work] = {}
        try:

            def has_ended(name: str) -> bool:
                return work[name].has_ended()

            # Triton times the configurations of a kernel when it runs first, and keeps the best one on the disk: one process
            # does that for all, while nothing else is on the device.
            commands = {model: _commands(folder, model, rounds) for model in models}
            for model in models:
                name = f"{model}-plain"
                work[name] = Work(folder, name, commands[model].pop(name))
                turns.all_wait(folder, [name], has_ended)
            for name, command in ((name, command) for each in commands.values() for name, command in each.items()):
                work[name] = Work(folder, name, command)

            turns.all_wait(folder, work, has_ended)
            for model in models:
                for number in range(rounds):
                    turns.give(folder, f"{model}-plain", number, has_ended)
                    turns.give(folder, f"{model}-profile{number}", 0, has_ended)
                turns.give(folder, f"{model}-lines", 0, has_ended)
                try:
                    yield (
                        model,
                        _figures(
                            [work[f"{model}-profile{number}"].result() for number in range(rounds)],
                            work[f"{model}-plain"].result(),
                            work[f"{model}-lines"].result(),
                        ),
                    )
                except RuntimeError as error:
                    yield model, {"error": str(error)}
        finally:
            for one in work.values():
                one.end()


def _commands(folder: Path, model: str, rounds: int) -> dict[str, list[str]]:
    """What the processes of a model run, by their names."""
    script = folder / f"{model}.py"
    text = (MODELS / script.name).read_text()
    script.write_text(f"{text}\n__import__('turns').take()\n")
    by_hand = [str(_HERE / "kernels_by_hand.py"), *(["--backward"] if ".backward()" in text else [])]
    commands = {
        f"{model}-plain": [*by_hand, "--rounds", str(rounds), "plain", str(script)],
        f"{model}-lines": [*by_hand, "lines", str(script)],
    }
    for number in range(rounds):
        commands[f"{model}-profile{number}"] = [str(_HERE / "line_oracle.py"), "--profile", str(script)]
    return commands


def _figures(profiles: list[dict[str, Any]], plain: dict[str, Any], hand: dict[str, Any]) -> dict[str, Any]:
    mine = profiles[-1]
    theirs = [(str(line), float(seconds)) for line, seconds in hand["lines"]]
    ratios = [one["step"] / seconds for one, seconds in zip(profiles, plain["seconds"], strict=True)]
    return mine | {
        "step": statistics.median(one["step"] for one in profiles),
        "plain": statistics.median(plain["seconds"]),
        "ratios": ratios,
        "ratio": statistics.median(ratios),
        "same_calls": mine["calls"] == plain["calls"],
        "calls": [mine["calls"], plain["calls"]],
        "same_kernels": mine["kernels"] == _whole(plain["kernels"]) if plain["kernels"] else None,
        "kernels": [mine["kernels"], _whole(plain["kernels"])],
        "by_hand": theirs,
        "by_hand_without_line": hand["unowned"],
        "verdict": verdict([(line, seconds) for line, seconds in mine["lines"]], theirs),
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


def _profiled(script: str) -> dict[str, Any]:
    """The profile, the calls in the output code, and the kernels on the device in a step."""
    kernels: Counter[str] = Counter()
    steps = [0]

    def seen(path: str) -> Iterator[Event]:
        for event in read_events(path):
            steps[0] += event.name.startswith(STEP) and event.category == "user_annotation"
            kernels[event.name] += event.category in ("kernel", "gpu_memcpy", "gpu_memset")
            yield event

    driver.read_events = seen  # type: ignore[assignment, attr-defined]
    with tempfile.TemporaryDirectory() as folder:
        spec = RunSpec(
            script=script, args=(), python=sys.executable, cwd=folder, symbolic_trace=False, profile=_CALLS
        )  # fmt: skip
        with Store(os.path.join(folder, "runs.db")) as store:
            try:
                run, _, profile = driver.profiled(spec, store)
            except driver.NotMeasured as error:
                sys.exit(str(error))
            report = store.report(run)
            texts = [
                store.stage_text(run, stage.id)
                for compile in report.compiles
                for stage in compile.stages
                if role_of(stage.name) is Role.CODE
            ]
    each = {name: count / max(1, steps[0]) for name, count in kernels.items() if count}
    lines = sorted(((f"{one.file}:{one.line}", one.seconds) for one in profile.lines), key=lambda one: -one[1])
    return {
        "step": profile.step_seconds,
        "profiled": profile.profiled_seconds,
        "owned_device": profile.owned_device_seconds / max(profile.device_seconds, 1e-12),
        "owned_step": profile.owned_seconds / max(profile.step_seconds, 1e-12),
        "calls": sorted(filter(None, map(calls_in, texts))),
        "kernels": _whole(each),
        "lines": lines,
        "kernel_seconds": [(one.name, one.seconds, one.calls) for one in profile.kernels],
        "gaps": [(one.kind, one.seconds, one.where) for one in profile.gaps],
        "unowned_kernels": [(one.name, one.seconds) for one in profile.kernels if not one.origins],
        "programs": [
            (one.function, one.plain_seconds, one.eager_seconds, one.compile_seconds) for one in profile.programs
        ],
    }


def _whole(kernels: dict[str, float]) -> dict[str, float]:
    """Counts of a step; what ran once beside the steps does not count."""
    return {name: round(count) for name, count in sorted(kernels.items()) if round(count)}


def _text(name: str, found: dict[str, Any]) -> list[str]:
    if "error" in found:
        return ["", f"{name}: {found['error']}"]
    kernels = {True: "the same", False: "NOT the same", None: "not on a GPU"}[found["same_kernels"]]
    lines = [
        "",
        f"{name}: step {1e6 * found['step']:.1f} µs, plain loop {1e6 * found['plain']:.1f} µs, ratio {found['ratio']:.3f} "
        f"({', '.join(f'{one:.3f}' for one in found['ratios'])}); "
        f"with the profiler {1e6 * found['profiled']:.1f} µs",
        f"  owned: {found['owned_device']:.3f} of kernel time, {found['owned_step']:.3f} of the step",
        f"  calls in output code {'the same' if found['same_calls'] else 'NOT the same'}, kernels on the device {kernels}",
        f"  dearest lines: {found['verdict']}",
    ]
    for kind, seconds, where in found["gaps"]:
        if not where.startswith(os.sep) or kind == "unknown":
            lines.append(f"    no owner: {kind} {1e6 * seconds:.1f} µs {where[:60]}")
    lines += [f"    no line: {name[:80]} {1e6 * seconds:.1f} µs" for name, seconds in found["unowned_kernels"]]
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
