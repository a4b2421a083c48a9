"""What a cold deep run costs above plain `python script.py`, with all stages.

    .venv/bin/python benchmarks/overhead.py [--runs 5] [--symbolic-trace] [MODEL or SCRIPT…]

The models are those of `deep_models.py`.  For each, plain Python and `irscope run --no-symbolic-trace` in turn, each
with an empty TORCHINDUCTOR_CACHE_DIR, so that Dynamo, Inductor and the C++ compiler do all their work every time.
Which goes first changes from round to round.  With --symbolic-trace a third run records that too, and its ratio is told
beside.  irscope's modules are compiled to bytecode before, as an installer does.  Printed are the medians, and the medians of the rounds' ratios; the goals for all models are at most 1.15 with
all stages, and 1.05 where only a figure that people notice counts (the time on the clock).

Run it on a quiet machine: the load average is printed before and after.  Processor time (of all processes, the C++
compiler's and irscope's own among them) is less disturbed by a machine that is not, and counts in full what irscope
does beside the script on another core.
"""

from __future__ import annotations

import argparse
import compileall
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import deep_models
import irscope

GOAL = 1.15
PLAIN, DEEP, WALKED = "plain", "irscope", "irscope with the symbolic trace"


@dataclass(frozen=True)
class Cost:
    """Seconds on the clock, and seconds of processors, those of the compiler's processes included."""

    wall: float
    processor: float


def cost_of(command: list[str]) -> Cost:
    """Runs a command with cold caches.  Raises CalledProcessError where it fails."""
    with tempfile.TemporaryDirectory() as folder:
        env = {name: value for name, value in os.environ.items() if not name.startswith(("TORCH", "IRSCOPE"))}
        env.update(TORCHINDUCTOR_CACHE_DIR=f"{folder}/inductor", IRSCOPE_STORE=f"{folder}/runs.db")
        before, began = _processor_seconds(), time.perf_counter()
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        cost = Cost(time.perf_counter() - began, _processor_seconds() - before)
        assert command[0] == sys.executable or "\ncompleted: The script ran to its end.\n" in done.stdout, done.stdout
        return cost


def _processor_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(name: str, script: Path, runs: int, walked: bool) -> float:
    """Prints the rounds of a script; returns the median of their ratios of time on the clock."""
    irscope = [str(Path(sys.executable).parent / "irscope"), "run"]
    commands = {PLAIN: [sys.executable, str(script)], DEEP: [*irscope, "--no-symbolic-trace", str(script)]}
    if walked:
        commands[WALKED] = [*irscope, str(script)]
    costs: dict[str, list[Cost]] = {what: [] for what in commands}
    for round in range(runs):
        turns = list(commands.items())
        for what, command in turns if round % 2 == 0 else turns[::-1]:
            costs[what].append(cost_of(command))
        print(
            f"  round {round + 1}: "
            + ", ".join(f"{what} {all[-1].wall:.1f} s ({all[-1].processor:.1f} s)" for what, all in costs.items()),
            flush=True,
        )
    ratios = {
        what: [
            statistics.median(
                getattr(b, kind) / getattr(a, kind) for a, b in zip(costs[PLAIN], costs[what], strict=True)
            )
            for kind in ("wall", "processor")
        ]
        for what in commands
        if what != PLAIN
    }
    print(
        f"{name}: plain {statistics.median(cost.wall for cost in costs[PLAIN]):.1f} s; "
        + "; ".join(f"{what}: ratio {wall:.3f}, of processor time {cpu:.3f}" for what, (wall, cpu) in ratios.items())
        + f" (goal ≤ {GOAL:g})",
        flush=True,
    )
    return float(ratios[DEEP][0])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(deep_models.SCRIPTS), metavar="MODEL")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--symbolic-trace", action="store_true", help="measure it, too")
    options = parser.parse_args()
    compileall.compile_dir(Path(irscope.__file__).parent, quiet=1)
    print("load average before:", *os.getloadavg())
    with tempfile.TemporaryDirectory() as folder:
        known = deep_models.write(Path(folder), [name for name in options.models if name in deep_models.SCRIPTS])
        scripts = {name: known.get(name, Path(name)) for name in options.models}
        ratios = [measure(name, script, options.runs, options.symbolic_trace) for name, script in scripts.items()]
    print("load average after:", *os.getloadavg())
    return 0 if max(ratios) <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
