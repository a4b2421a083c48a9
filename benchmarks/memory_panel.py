"""How long the panel *Memory* waits for its chart, and for the lines of its buffers, which come after it.

    .venv/bin/python benchmarks/memory_panel.py STORE [RUN]

STORE is one that `benchmarks/large.py --keep STORE` has written, or any other; of the run the compile with the most
operations is taken.  Printed are the processor times of both answers, with all that is read for them, how many times
longer an answer with both would take than the chart's alone, and the size of that.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

from irscope_server.view.reader import Reader

GOAL_SECONDS = 1.0


def cpu_seconds(what: Callable[[], str]) -> tuple[float, str]:
    """Processor time of a call, and what it returns."""
    began = time.process_time()
    answer = what()
    return time.process_time() - began, answer


def main() -> int:
    """Returns the exit code: 1 if the chart takes longer than its goal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store")
    parser.add_argument("run", nargs="?")
    options = parser.parse_args()
    reader = Reader(options.store)
    try:
        run = options.run or json.loads(reader.answer("irscope/runs", {"limit": 1}))["runs"][0]["run"]
        reader.answer("irscope/runs", {"limit": 1})  # what is imported for the first answer is not counted
        chart, text = cpu_seconds(lambda: reader.answer("irscope/memory", {"run": run}))
        places, _ = cpu_seconds(lambda: reader.answer("irscope/memoryPlaces", {"run": run}))
    finally:
        reader.close()
    plans = json.loads(text)["plans"]
    buffers = sum(len(plan["buffers"]) for plan in plans)
    print(f"{len(plans)} plans, {buffers} buffers, {len(text) / 1e6:.2f} MB")
    print(f"chart {chart:.2f} s, lines {places:.2f} s: together {(chart + places) / chart:.1f} times as long")
    return int(chart > GOAL_SECONDS)


if __name__ == "__main__":
    raise SystemExit(main())
