"""Whose time the steps of ten models are, on the device that is here: `irscope profile` of the scripts in `tests/plain/profiles/models`.

    .venv/bin/python benchmarks/profiles.py [--record FOLDER] [MODEL…]

For each the time of a step without the profiler, a step with it, and a plain loop in a process without irscope where the
model is called without a backward; then the share of the kernels' time that is on lines, and of the step's time that
has an owner. The goals are 0.98 and 0.95, and a step that is within 1.05 (CPU) or 1.03 (GPU) of the plain loop. With
--record the traces, the facts beside them and the stores stay in a folder.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import irscope.driver.profiling as driver
from irscope.driver.driver import RunSpec
from irscope.ir.kineto import Event, read_events
from irscope.runner.rounds import READY
from irscope.store.store import Store

MODELS = Path(__file__).resolve().parent.parent / "tests" / "plain" / "profiles" / "models"
_LOOP = """
import runpy, sys, time, torch
seen = []
real = torch.compile
def compiled(*args, **options):
    made = real(*args, **options)
    def call(*args, **options):
        seen[:] = [(args, options)]
        return made(*args, **options)
    seen_by.append(made)
    return call
seen_by = []
torch.compile = compiled
runpy.run_path(sys.argv[1], run_name="__main__")
(args, options), made = seen[0], seen_by[-1]
wait = torch.cuda.synchronize if torch.cuda.is_available() else (lambda: None)
seconds = []
with torch.no_grad():
    for _ in range(200):
        wait()
        start = time.perf_counter()
        made(*args, **options)
        wait()
        seconds.append(time.perf_counter() - start)
print(sorted(seconds[50:])[37])
"""


def main() -> None:
    """Measures the models one after the other."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--record", metavar="FOLDER", type=Path)
    options.add_argument("models", nargs="*", metavar="MODEL")
    given = options.parse_args()
    names = given.models or sorted(path.stem for path in MODELS.glob("*.py"))
    print("model            step µs  with profiler  plain loop  kernels owned  step owned")
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            print(_measured(name, given.record or Path(folder)), flush=True)


def _measured(name: str, folder: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)

    def keeping(path: str) -> Iterator[Event]:
        shutil.copy(path, folder / f"{name}.json")
        shutil.copy(os.path.join(os.path.dirname(path), READY), folder / f"{name}.ready.json")
        return read_events(path)

    driver.read_events = keeping  # type: ignore[assignment, attr-defined]
    script = str(MODELS / f"{name}.py")
    spec = RunSpec(
        script=script, args=(), python=sys.executable, cwd=str(folder), symbolic_trace=False, profile=10
    )  # fmt: skip
    with Store(str(folder / f"{name}.db")) as store:
        try:
            run, _, found = driver.profiled(spec, store)
        except driver.NotMeasured as error:
            return f"{name:15}  {error}"
        store.tidy(run)
    plain = "" if any(one.backward for one in found.programs) else f"{1e6 * _plain(script):.1f}"
    return (
        f"{name:15} {1e6 * found.step_seconds:8.1f} {1e6 * found.profiled_seconds:14.1f} {plain:>11}"
        f" {found.owned_device_seconds / found.device_seconds:14.3f} {found.owned_seconds / found.step_seconds:11.3f}"
    )


def _plain(script: str) -> float:
    done = subprocess.run([sys.executable, "-c", _LOOP, script], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


if __name__ == "__main__":
    main()
