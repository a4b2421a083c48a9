"""What the capture of each pipeline costs above doing its work by hand: cold, with default settings.

    .venv/bin/python benchmarks/pipelines.py [--runs 5] [--models bert,conv] [--environments FOLDER] [PIPELINE…]

For each pipeline and model, a script that uses the system's own interface (`by_hand.py`) and `irscope run --pipeline`
in turn, each in its own process with an empty TORCHINDUCTOR_CACHE_DIR.  Which goes first changes from round to round.
Printed are the medians, and the medians of the rounds' ratios; the goal is a ratio of at most 1.15.  Processor time
counts all processes, and is less disturbed by a machine that is not quiet.  What `irscope run` costs for a script that
only imports torch is measured first.  It is the same for every program, weighs most with the smallest, and the last
ratio is of processor time without it.

Pipelines that need packages run in the environments of `npm run test:pipelines`; those that have none are left out.
"""

from __future__ import annotations

import argparse
import compileall
import os
import statistics
import sys
import tempfile
from pathlib import Path

import by_hand
import irscope
from irscope.pipelines.registry import pipelines
from overhead import Cost, cost_of

GOAL = 1.15
HAND, IRSCOPE = "by hand", "irscope"
ENVIRONMENTS = Path.home() / ".cache" / "irscope" / "pipelines"


def python_for(pipeline: str, environments: Path) -> Path | None:
    """The interpreter that has a pipeline's packages; None if there is none."""
    if not pipelines()[pipeline].needs:
        return Path(sys.executable)
    python = environments / pipeline / "bin" / "python"
    return python if (environments / pipeline / ".irscope-done").exists() else None


def rounds(pipeline: str, python: Path, runs: int, scripts: tuple[str, str]) -> dict[str, list[Cost]]:
    """What both scripts of a pipeline cost in each round: the one by hand, and the one that irscope runs."""
    compiles = "compile" in scripts[1]
    with tempfile.TemporaryDirectory() as folder:
        hand, own = Path(folder, "by_hand.py"), Path(folder, "script.py")
        for path, text in zip((hand, own), scripts, strict=True):
            path.write_text(text)
        run = [sys.executable, "-m", "irscope", "run", "--pipeline", pipeline, "--python", str(python), str(own)]
        commands = {HAND: [str(python), str(hand)], IRSCOPE: run}
        costs: dict[str, list[Cost]] = {what: [] for what in commands}
        for number in range(runs):
            turns = list(commands.items())
            for what, command in turns if number % 2 == 0 else turns[::-1]:
                costs[what].append(cost_of(command, compiles))
    return costs


def fixed_cost(runs: int) -> float:
    """Seconds of processors that `irscope run` adds to a script that compiles nothing; prints them."""
    costs = rounds("torchscript", Path(sys.executable), runs, ("import torch\n", "import torch\n"))
    more = statistics.median(b.processor - a.processor for a, b in zip(costs[HAND], costs[IRSCOPE], strict=True))
    print(f"fixed: {more:+.2f} s of processors", flush=True)
    return more


def measure(pipeline: str, model: str, python: Path, runs: int, fixed: float) -> float:
    """Prints the rounds of a pipeline and a model; returns the median of the ratios on the clock."""
    costs = rounds(pipeline, python, runs, by_hand.scripts_of(pipeline, model))
    wall = _ratio([cost.wall for cost in costs[HAND]], [cost.wall for cost in costs[IRSCOPE]])
    processor = _ratio([cost.processor for cost in costs[HAND]], [cost.processor for cost in costs[IRSCOPE]])
    varying = _ratio([cost.processor for cost in costs[HAND]], [cost.processor - fixed for cost in costs[IRSCOPE]])
    seconds = ", ".join(
        f"{what} {statistics.median(one.wall for one in each):.2f} s "
        f"({statistics.median(one.processor for one in each):.2f} s of processors)"
        for what, each in costs.items()
    )
    print(
        f"{pipeline} {model}: ratio {wall:.3f}, of processor time {processor:.3f}, without the fixed cost {varying:.3f}; "
        f"{seconds}",
        flush=True,
    )
    return wall


def _ratio(by_hand: list[float], captured: list[float]) -> float:
    return statistics.median(b / a for a, b in zip(by_hand, captured, strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pipelines", nargs="*", default=list(by_hand.BY_HAND), metavar="PIPELINE")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--models", default=",".join(by_hand.MODELS))
    parser.add_argument("--environments", type=Path, default=ENVIRONMENTS)
    options = parser.parse_args()
    compileall.compile_dir(Path(irscope.__file__).parent, quiet=1)
    print("load average before:", *os.getloadavg(), flush=True)
    fixed = fixed_cost(options.runs)
    ratios = {}
    for pipeline in options.pipelines:
        python = python_for(pipeline, options.environments)
        if python is None:
            print(f"{pipeline}: not measured, since it has no environment (npm run test:pipelines -- {pipeline})")
            continue
        for model in options.models.split(","):
            ratios[f"{pipeline} {model}"] = measure(pipeline, model, python, options.runs, fixed)
    print("load average after:", *os.getloadavg())
    above = {name: ratio for name, ratio in ratios.items() if ratio > GOAL}
    for name, ratio in sorted(above.items(), key=lambda one: -one[1]):
        print(f"above {GOAL:g}: {name} {ratio:.3f}")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
