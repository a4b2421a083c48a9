"""Which operators of five models reach the lowest level that each pipeline shows, with the user's lines.

    .venv/bin/python benchmarks/lowest_level.py [--models mlp,conv] [--environments FOLDER] [PIPELINE…]

The models are those of `tests/five_models.py`: an MLP, a convolutional net, and BERT, GPT-2 and ViT from tiny
configurations.  Each script compares its results (in training: its gradients) with eager mode and fails where they differ.
One row for each pipeline and model: of the operators that were captured, how many are in the last stage, or in a library
call there; how many are gone for a reason that is known, which is below the row; and the share of the rest that arrived
with the user's lines.  The goal is 95 %.

Pipelines that need packages run in the environments of `npm run test:pipelines`; those that have none are left out.
"""

from __future__ import annotations

import argparse
import collections
import os
import sys
import tempfile
from pathlib import Path

from pipelines import ENVIRONMENTS, python_for

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from five_models import SCRIPTS, TRAINING_SCRIPTS, reached
from irscope.pipelines.registry import pipelines
from support import run_captured, write

GOAL = 0.95
TRAINED = ("inductor", "openxla", "pruning", "torchscript", "xla")
"""Those that compute the backward of what they are given; the others leave training to PyTorch."""


def measure(pipeline: str, model: str, script: str, what: str, python: Path) -> bool:
    """Prints the row of a script; returns whether it meets the goal."""
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), script)
        ran = run_captured(path, Path(folder, "runs.db"), "deep", pipeline=pipeline, python=str(python), cwd=folder)
        if not ran.stdout.startswith("agree"):
            print(f"{pipeline} {model} {what}: FAILED: {ran.report.outcome}\n{ran.stderr}", flush=True)
            return False
        found = reached(ran)
    lost = f", lost: {', '.join(found.lost)}" if found.lost else ""
    lost += f", {found.lineless} without a line of the user's" if found.lineless else ""
    gaps = "".join(f", gap: {one.what}: {one.why}" for one in ran.report.capture_gaps)
    print(
        f"{pipeline} {model} {what}: {found.taken} of {found.captured}, {len(found.dropped)} gone for a reason; "
        f"{100 * found.share:.1f} %{lost}{gaps}",
        flush=True,
    )
    for why, count in collections.Counter(found.dropped).most_common():
        print(f"    {count} x {why}", flush=True)
    return found.share >= GOAL and not gaps


def main() -> int:
    usable = [one.name for one in pipelines().values() if not one.unsupported and one.name != "dynamo"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pipelines", nargs="*", default=usable, metavar="PIPELINE")
    parser.add_argument("--models", default=",".join(SCRIPTS))
    parser.add_argument("--environments", type=Path, default=ENVIRONMENTS)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    met = True
    for pipeline in options.pipelines:
        python = python_for(pipeline, options.environments)
        if python is None:
            print(f"{pipeline}: left out, since it has no environment (npm run test:pipelines -- {pipeline})")
            continue
        for model in options.models.split(","):
            met &= measure(pipeline, model, SCRIPTS[model], "inference", python)
            if pipeline in TRAINED:
                met &= measure(pipeline, model, TRAINING_SCRIPTS[model], "training", python)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
