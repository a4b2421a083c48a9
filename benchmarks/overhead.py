"""What a cold deep run costs above plain `python script.py`, with default settings, as users get it.

    .venv/bin/python benchmarks/overhead.py [--runs 5] [--device cuda] [--without-symbolic-trace] [MODEL or SCRIPT…]

The models are those of `deep_models.py`, and a script that compiles almost nothing, whose cost is the fixed one.  For
each, plain Python and `irscope run` in turn, each with an empty TORCHINDUCTOR_CACHE_DIR, so that Dynamo, Inductor and
the compilers of its kernels do all their work every time.  (With a filled cache plain Python takes its graphs from the
FX graph cache, half a second less for the smallest script, and a deep run compiles them.)  Which goes first changes
from round to round.  With --without-symbolic-trace a third run leaves that out, and its ratio is told beside.
irscope's modules are compiled to bytecode before, as an installer does.  Printed are the medians, and the medians of
the rounds' ratios and differences.  The goals are a median ratio of at most 1.05 over the models, and a fixed cost of
at most 0.2 s.

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

GOAL = 1.05
FIXED_GOAL = 0.2
PLAIN, DEEP, UNWALKED = "plain", "irscope", "irscope without the symbolic trace"


@dataclass(frozen=True)
class Cost:
    """Seconds on the clock, and seconds of processors, those of the compiler's processes included."""

    wall: float
    processor: float


def cost_of(command: list[str], compiles: bool = True) -> Cost:
    """Runs a command with cold caches, which compiles something.  Raises CalledProcessError where it fails."""
    with tempfile.TemporaryDirectory() as folder:
        env = {name: value for name, value in os.environ.items() if not name.startswith(("TORCH", "IRSCOPE"))}
        env.update(TORCHINDUCTOR_CACHE_DIR=f"{folder}/inductor", IRSCOPE_STORE=f"{folder}/runs.db")
        before, began = _processor_seconds(), time.perf_counter()
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        cost = Cost(time.perf_counter() - began, _processor_seconds() - before)
        said = "\ncompleted: The script ran to its end.\n" if compiles else "completed: The script ran to its end,"
        assert command[1] != "-m" or said in done.stdout, done.stdout
        return cost


def _processor_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@dataclass(frozen=True)
class Compared:
    """Medians over the rounds: ratios to plain Python, and seconds above it."""

    wall: float
    processor: float
    more_wall: float
    more_processor: float


def measure(name: str, script: Path, runs: int, unwalked: bool) -> Compared:
    """Prints the rounds of a script; returns what a run with default settings costs."""
    irscope = [sys.executable, "-m", "irscope", "run"]
    commands = {PLAIN: [sys.executable, str(script)], DEEP: [*irscope, str(script)]}
    if unwalked:
        commands[UNWALKED] = [*irscope, "--no-symbolic-trace", str(script)]
    costs: dict[str, list[Cost]] = {what: [] for what in commands}
    for round in range(runs):
        turns = list(commands.items())
        for what, command in turns if round % 2 == 0 else turns[::-1]:
            costs[what].append(cost_of(command))
        print(
            f"  round {round + 1}: "
            + ", ".join(f"{what} {all[-1].wall:.2f} s ({all[-1].processor:.2f} s)" for what, all in costs.items()),
            flush=True,
        )
    compared = {what: _compare(costs[PLAIN], costs[what]) for what in commands if what != PLAIN}
    print(
        f"{name}: plain {statistics.median(cost.wall for cost in costs[PLAIN]):.1f} s; "
        + "; ".join(
            f"{what}: ratio {it.wall:.3f} ({it.more_wall:+.2f} s), of processor time {it.processor:.3f} "
            f"({it.more_processor:+.2f} s)"
            for what, it in compared.items()
        ),
        flush=True,
    )
    return compared[DEEP]


def _compare(plain: list[Cost], other: list[Cost]) -> Compared:
    pairs = list(zip(plain, other, strict=True))
    return Compared(
        statistics.median(b.wall / a.wall for a, b in pairs),
        statistics.median(b.processor / a.processor for a, b in pairs),
        statistics.median(b.wall - a.wall for a, b in pairs),
        statistics.median(b.processor - a.processor for a, b in pairs),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "models", nargs="*", default=[*deep_models.SCRIPTS, deep_models.ALMOST_NOTHING], metavar="MODEL"
    )
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--device", default="cpu", help="where the models and their inputs are")
    parser.add_argument("--without-symbolic-trace", action="store_true", help="measure that, too")
    options = parser.parse_args()
    compileall.compile_dir(Path(irscope.__file__).parent, quiet=1)
    print("load average before:", *os.getloadavg())
    with tempfile.TemporaryDirectory() as folder:
        known = deep_models.write(Path(folder), [*deep_models.SCRIPTS, deep_models.ALMOST_NOTHING], options.device)
        compared = {
            name: measure(name, known.get(name, Path(name)), options.runs, options.without_symbolic_trace)
            for name in options.models
        }
    print("load average after:", *os.getloadavg())
    met = True
    if fixed := compared.pop(deep_models.ALMOST_NOTHING, None):
        print(f"fixed cost: {fixed.more_wall:.2f} s (goal ≤ {FIXED_GOAL:g})")
        met = fixed.more_wall <= FIXED_GOAL
    if compared:
        ratio = statistics.median(one.wall for one in compared.values())
        print(f"median ratio: {ratio:.3f} (goal ≤ {GOAL:g})")
        met = met and ratio <= GOAL
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
