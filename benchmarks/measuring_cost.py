"""What `irscope profile` adds to a step that it times: the same steps with it and in a process without irscope, by turns.

    python benchmarks/measuring_cost.py [--turns N] [--json FILE] [MODEL…]

The models are the scripts in `tests/plain/profiles/models`, on the device that is here. For each, one process runs the script by
`irscope profile` and another one without irscope; both compile it. Then they take N turns (20): in each a process calls its compiled
program for a quarter of a second, with a backward where the script has one. In the process of `irscope profile` that happens where it takes its own
samples, with everything that it has put around the program. A turn gives the lower quartile of its calls. Printed are the median of the N ratios,
their quartiles, and the step. The goals are 1.03 on a GPU and 1.05 on a CPU.

With irscope away on both sides, the same two processes show how far apart two runs of one program are: ``--control``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import turns
from line_oracle import MODELS, Work

_HERE = Path(__file__).resolve().parent
_TURN_SECONDS, _WARM_SECONDS = 0.25, 0.05
TURNS = "STEP_TURNS"


def main() -> None:
    """Measures the models, one after the other."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--turns", type=int, default=20)
    options.add_argument("--json", metavar="FILE")
    options.add_argument("--control", action="store_true", help="no irscope on either side")
    options.add_argument("--profile", metavar="SCRIPT", help=argparse.SUPPRESS)
    options.add_argument("--plain", metavar="SCRIPT", help=argparse.SUPPRESS)
    options.add_argument("models", nargs="*", metavar="MODEL")
    given = options.parse_args()
    if given.profile or given.plain:
        _profiled(given.profile) if given.profile else _plain(given.plain)
        return
    os.environ[TURNS] = str(given.turns)
    print("load", os.getloadavg()[0], flush=True)
    found = {}
    for model in given.models or sorted(path.stem for path in MODELS.glob("*.py")):
        try:
            found[model] = one = _compared(model, given.turns, "--plain" if given.control else "--profile")
        except RuntimeError as error:
            print(f"{model}: {error}", flush=True)
            continue
        low, middle, high = statistics.quantiles(one["ratios"], n=4, method="inclusive")
        print(
            f"{model:16} {middle:.3f} ({low:.3f} to {high:.3f}); step {1e6 * statistics.median(one['with']):.1f} µs with, "
            f"{1e6 * statistics.median(one['without']):.1f} µs without",
            flush=True,
        )
        if given.json:
            Path(given.json).write_text(json.dumps(found, indent=1))
    print("load", os.getloadavg()[0])


def _compared(model: str, count: int, side: str) -> dict[str, list[float]]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary)
        text = (MODELS / f"{model}.py").read_text()
        script = folder / f"{model}.py"
        script.write_text(text)
        watched = folder / "watched" / script.name
        watched.parent.mkdir()
        watched.write_text(f"{text}\n__import__('measuring_cost').install()\n" if side == "--profile" else text)
        os.environ["PYTHONPATH"] = os.pathsep.join([str(_HERE), os.environ.get("PYTHONPATH", "")])
        backward = ["--backward"] if ".backward()" in text else []
        work: dict[str, Work] = {}

        def has_ended(name: str) -> bool:
            return work[name].has_ended()

        try:
            # The first one compiles alone: Triton times the configurations of kernels when they run first.
            for name, arguments in {"without": ["--plain", script], "with": [side, watched]}.items():
                os.environ["STEP_BACKWARD"] = "1" if backward else ""
                work[name] = Work(folder, name, [str(_HERE / "measuring_cost.py"), *map(str, arguments)])
                turns.all_wait(folder, [name], has_ended)
            for number in range(count):
                for name in ("without", "with") if number % 2 else ("with", "without"):
                    turns.give(folder, name, number, has_ended)
            for one in work.values():
                one.result()
            each = {name: json.loads((folder / f"{name}.json").read_text()) for name in work}
        finally:
            for one in work.values():
                one.end()
    pairs = zip(each["with"], each["without"], strict=True)
    return each | {"ratios": [mine / theirs for mine, theirs in pairs]}


# --- in the processes that are measured -------------------------------------------------------------------------------


def take_turns(step: Callable[[], object]) -> None:
    """Calls a step in each of this process's turns, and writes the lower quartile of each turn."""
    found = []
    for number in range(int(os.environ[TURNS])):
        turns.take(number)
        found.append(_typical(step))
        turns.give_back(number)
    Path(os.environ[turns.FOLDER], f"{os.environ[turns.NAME]}.json").write_text(json.dumps(found))


def _typical(step: Callable[[], object]) -> float:
    until = time.perf_counter() + _WARM_SECONDS
    while time.perf_counter() < until:
        step()
    seconds: list[float] = []
    until = time.perf_counter() + _TURN_SECONDS
    while len(seconds) < 8 or time.perf_counter() < until:
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    return sorted(seconds)[len(seconds) // 4]


def install() -> None:
    """Called at the end of a script in the process of `irscope profile`: the turns are where that takes its own samples."""
    from irscope.runner import profiling, rounds

    serve = profiling.Profiling.serve

    def with_turns(self: Any) -> None:
        [one] = self._measured
        [facts] = self._facts

        def step() -> None:
            profiling._call(one, facts["backward"])
            rounds.synchronize()

        with rounds.modes(one):
            take_turns(step)
        serve(self)

    profiling.Profiling.serve = with_turns  # type: ignore[method-assign]


def _plain(script: str) -> None:
    from kernels_by_hand import Program

    program = Program(script, with_graphs=True)
    backward = bool(os.environ.get("STEP_BACKWARD"))
    for _ in range(5):
        program.step(backward)
    take_turns(lambda: program.step(backward))
    print(json.dumps({}))


def _profiled(script: str) -> None:
    import irscope.driver.profiling as driver
    from irscope.driver.driver import RunSpec
    from irscope.store.store import Store

    with tempfile.TemporaryDirectory() as folder:
        spec = RunSpec(script=script, args=(), python=sys.executable, cwd=folder, symbolic_trace=False, profile=2)
        with Store(os.path.join(folder, "runs.db")) as store:
            driver.profiled(spec, store)
    print(json.dumps({}))


if __name__ == "__main__":
    main()
