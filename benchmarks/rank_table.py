"""The measured table of docs/ranks.md, made on a machine with a GPU for each of two ranks.

    .venv/bin/python benchmarks/rank_table.py [--only cases waits …]   # measures, and writes rank_table.json
    .venv/bin/python benchmarks/rank_table.py --print                  # the table of what is in the file

What is measured is in `rank_cases.py`, `waits.py`, `hangs.py` and `overlaps.py`; ``--only`` keeps the rest of the file.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hangs
import overlaps
import rank_cases
import waits

FILE = Path(__file__).with_suffix(".json")
RANKS = 2
SMALL, LARGE = (waits.Job(RANKS, "nccl", 40, width, layers) for width, layers in ((256, 2), (4096, 8)))


def _hangs() -> list[dict[str, Any]]:
    answers = [(case, *hangs.of_case(case, RANKS, "nccl")) for case in hangs.MISSING]
    return [{"case": case, "is_named": is_named, "answer": said} for case, is_named, said in answers]


PARTS: dict[str, Callable[[], Any]] = {
    "cases": lambda: [rank_cases.run_of(strategy, RANKS, "fast") for strategy in rank_cases.STRATEGIES],
    "waits": lambda: [waits.wait_of(job, sleep) for job in (SMALL, LARGE) for sleep in waits.SLEEPS],
    "overhead": lambda: [waits.overhead_of(job, 5) for job in (LARGE, SMALL)],
    "strategies": lambda: [overlaps.overhead_of(strategy, RANKS, 2048, 8, 5) for strategy in ("fsdp2", "ddp")],
    "overlaps": lambda: [overlaps.of_strategy(strategy, RANKS, 2048, 8) for strategy in overlaps.STRATEGIES],
    "hangs": _hangs,
    "answers": lambda: hangs.cost(RANKS, "nccl", 2000, 10),
}
NAMES = {"ddp": "DDP", "fsdp2": "FSDP2", "tp": "tensor parallel", "pipeline": "a pipeline"}


def rows(data: dict[str, Any]) -> list[tuple[str, str]]:
    """The table: a job, and what came out."""
    table = []
    for one in data["cases"]:
        said = f"{one['named']} of {one['planted']} constants at their line, {len(one['false'])} false"
        table.append(
            (f"{NAMES[one['strategy']]}: 24 modules with the index of the device, 12 also with a constant", said)
        )
    for name, layers in (("two small layers", SMALL.layers), ("eight large layers", LARGE.layers)):
        mine = [one for one in data["waits"] if one["layers"] == layers]
        told = ", ".join(f"{one.get('typical_ms', '–')}" for one in mine)
        wrong = sum(not one.get("is_right") for one in mine)
        sleeps = ", ".join(f"{one['sleep_ms']:.0f}" for one in mine)
        right = f"wrong in {wrong}" if wrong else "right"
        table.append((f"{name}, one rank sleeps {sleeps} ms in each step", f"{told} ms; rank and line {right}"))
    for one in (*data["overhead"], *data["strategies"]):
        name = f" of {NAMES[one['strategy']]}" if "strategy" in one else ""
        spread = f"{min(one['ratios']):.3f} to {max(one['ratios']):.3f}"
        table.append(
            (f"a step{name}, {one['step_ms']} ms", f"{one['median']:.3f} ({spread}) of its time without irscope")
        )
    for one in data["overlaps"]:
        if one["strategy"] != "pipeline":
            said = f"{one['irscope_share']:.0%} of their time something is computed; by the profiler {one['profiler_share']:.0%}"
            table.append((f"collectives of {NAMES[one['strategy']]}", said))
    named = [one["case"] for one in data["hangs"] if one["is_named"]]
    table.append(
        (f"hangs: {', '.join(one['case'] for one in data['hangs'])}", f"{len(named)} of {len(data['hangs'])} named")
    )
    table.append(("an answer of `irscope attach`", f"{data['answers']['ms of an answer']} ms longer steps"))
    return table


def markdown(data: dict[str, Any]) -> str:
    """The table as it is in the docs."""
    cells = [("job", "result"), *rows(data)]
    wide, other = (max(len(row[at]) for row in cells) for at in (0, 1))
    lines = [f"| {job.ljust(wide)} | {result.ljust(other)} |" for job, result in cells]
    return "\n".join([lines[0], f"| {'-' * wide} | {'-' * other} |", *lines[1:]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=[*PARTS], default=[*PARTS])
    parser.add_argument("--print", action="store_true", dest="is_printed")
    parser.add_argument("--to", type=Path, default=FILE)
    options = parser.parse_args()
    data = json.loads(options.to.read_text(encoding="utf-8")) if options.to.exists() else {}
    if not options.is_printed:
        data |= {"torch": importlib.metadata.version("torch"), "cores": os.cpu_count(), "ranks": RANKS}
        for part in options.only:
            data[part] = PARTS[part]()
            print(part, json.dumps(data[part]), flush=True)
            options.to.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    if {*PARTS} <= {*data}:
        print(markdown(data))


if __name__ == "__main__":
    main()
