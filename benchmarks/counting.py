"""What it costs that calls of compiled code are counted: the smallest of compiled functions, one addition, with and without.

    python benchmarks/counting.py [--rounds 9]

Each round times calls without the hook and with it, in alternation in one process; printed is the median of the ratios.
Where the goal is missed the exit code is 1.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time

import torch
from irscope.runner.steady import SteadyState
from torch._dynamo.eval_frame import set_guard_complete_hook

CALLS = 3000
GOAL = 1.1


@torch.compile(backend="eager")
def add(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def seconds(x: torch.Tensor) -> float:
    begun = time.perf_counter()
    for _ in range(CALLS):
        add(x)
    return time.perf_counter() - begun


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    x = torch.ones(3)
    hook = SteadyState(10**9, lambda limit: None)._called
    seconds(x)
    ratios = []
    for _ in range(rounds):
        set_guard_complete_hook(None)
        without = seconds(x)
        set_guard_complete_hook(hook)
        ratios.append(seconds(x) / without)
    ratio = statistics.median(ratios)
    print(
        f"with counting / without: {ratio:.3f} (rounds {', '.join(f'{each:.3f}' for each in sorted(ratios))}; goal {GOAL})"
    )
    return 0 if ratio <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
