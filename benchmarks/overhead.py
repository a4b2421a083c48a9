"""What a cold deep run costs above plain `python script.py`.

    .venv/bin/python benchmarks/overhead.py [--runs 5] [SCRIPT…]

For each script, plain Python and `irscope run` in turn, each with an empty TORCHINDUCTOR_CACHE_DIR, so that Dynamo,
Inductor and the C++ compiler do all their work every time.  Which of the two goes first changes from round to round.
Prints the median of each, and the median of the rounds' ratios; the goal is a ratio of at most 1.10.  Run it on a
quiet machine: the load average is printed before and after.  Processor time is less disturbed by a machine that is not.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
GOAL = 1.10
BERT = """\
import torch
import transformers as T

torch.manual_seed(0)
model = torch.compile(
    T.BertModel(T.BertConfig(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37)).eval()
)
for length in (8, 12):
    with torch.no_grad():
        model(input_ids=torch.randint(3, 99, (2, length)))
"""


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


def measure(script: str, runs: int) -> float:
    """Prints the rounds of a script; returns the median of their ratios of time on the clock."""
    plain_command = [sys.executable, script]
    irscope_command = [str(Path(sys.executable).parent / "irscope"), "run", script]
    plain: list[Cost] = []
    captured: list[Cost] = []
    for round in range(runs):
        turns = [(plain_command, plain), (irscope_command, captured)]
        for command, costs in turns if round % 2 == 0 else turns[::-1]:
            costs.append(cost_of(command))
        print(
            f"  round {round + 1}: plain {plain[-1].wall:.1f} s, irscope {captured[-1].wall:.1f} s, "
            f"ratio {captured[-1].wall / plain[-1].wall:.3f} (of processor time {captured[-1].processor / plain[-1].processor:.3f})",
            flush=True,
        )
    wall, processor = (
        statistics.median(getattr(b, kind) / getattr(a, kind) for a, b in zip(plain, captured, strict=True))
        for kind in ("wall", "processor")
    )
    print(
        f"{Path(script).name}: medians: plain {statistics.median(cost.wall for cost in plain):.1f} s, "
        f"irscope {statistics.median(cost.wall for cost in captured):.1f} s, ratio {wall:.3f} (goal ≤ {GOAL:.2f}), "
        f"of processor time {processor:.3f}"
    )
    return wall


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scripts", nargs="*", metavar="SCRIPT", help="default: the GPT example and a small BERT")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    print("load average before:", *os.getloadavg())
    with tempfile.TemporaryDirectory() as folder:
        bert = Path(folder) / "bert.py"
        bert.write_text(BERT)
        scripts = options.scripts or [str(ROOT / "examples" / "gpt_training.py"), str(bert)]
        ratios = [measure(script, options.runs) for script in scripts]
    print("load average after:", *os.getloadavg())
    return 0 if max(ratios) <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
