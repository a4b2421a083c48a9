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
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import hangs
import overlaps
import rank_cases
import waits

FILE = Path(__file__).with_suffix(".json")
RANKS = 2
SMALL, LARGE = (waits.Job(RANKS, "nccl", 40, width, layers) for width, layers in ((256, 2), (4096, 8)))


def _shares(strategy: str) -> dict[str, Any]:
    return {name: value for name, value in overlaps.of_strategy(strategy, RANKS, 2048, 8).items() if name != "rows"}


def _hangs() -> list[dict[str, Any]]:
    return [{"case": case, "is_named": hangs.of_case(case, RANKS, "nccl")[0]} for case in hangs.MISSING]


PARTS: dict[str, Callable[[], Any]] = {
    "cases": lambda: [rank_cases.run_of(strategy, RANKS, "fast") for strategy in rank_cases.STRATEGIES],
    "waits": lambda: [waits.wait_of(job, sleep) for job in (SMALL, LARGE) for sleep in waits.SLEEPS],
    "overhead": lambda: [waits.overhead_of(job, 5) for job in (LARGE, SMALL)],
    "strategies": lambda: [overlaps.overhead_of("fsdp2", RANKS, 2048, 8, 3)],
    "overlaps": lambda: [_shares(strategy) for strategy in overlaps.STRATEGIES],
    "hangs": _hangs,
    "answers": lambda: hangs.cost(RANKS, "nccl", 2000, 10),
}
NAMES = {"ddp": "DDP", "fsdp2": "FSDP2", "tp": "tensor parallel", "pipeline": "a pipeline"}


def rows(data: dict[str, Any]) -> list[tuple[str, str]]:
    """The table: a job, and what came out."""
    compared = [one for one in data["overlaps"] if one["strategy"] != "pipeline"]
    costs = [*data["overhead"], *data["strategies"]]
    hung, added = data["hangs"], data["answers"]["ms of an answer"]
    return [
        _of_cases(data["cases"]),
        *(_of_waits(name, data["waits"], job.layers) for name, job in (("two small", SMALL), ("eight large", LARGE))),
        (
            f"steps of {_listed(one['step_ms'] for one in costs)} ms (the last: FSDP2)",
            f"{_listed(one['median'] for one in costs)} of their time without irscope",
        ),
        (
            f"something is beside the collectives of {_listed(NAMES[one['strategy']] for one in compared)}",
            f"{_listed(_percent(one, 'irscope') for one in compared)} of their time; by the profiler "
            f"{_listed(_percent(one, 'profiler') for one in compared)}",
        ),
        (
            f"hangs: {_listed(one['case'] for one in hung)}",
            f"{sum(one['is_named'] for one in hung)} of {len(hung)} named",
        ),
        ("an answer of `irscope attach`", f"adds {added:+.1f} ms to the steps"),
    ]


def _listed(values: Iterable[object]) -> str:
    return ", ".join(map(str, values))


def _percent(one: dict[str, Any], whose: str) -> str:
    return f"{one[f'{whose}_share']:.0%}"


def _of_cases(cases: list[dict[str, Any]]) -> tuple[str, str]:
    named, planted = (sum(one[name] for one in cases) for name in ("named", "planted"))
    false = sum(len(one["false"]) for one in cases)
    whom = _listed(NAMES[one["strategy"]] for one in cases)
    return (
        f"24 modules under {whom}, each with the index of its device, 12 also with a constant of the rank",
        f"{named} of {planted} constants at their line, {false} false",
    )


def _of_waits(name: str, waits: list[dict[str, Any]], layers: int) -> tuple[str, str]:
    mine = [one for one in waits if one["layers"] == layers]
    wrong = sum(not one.get("is_right") for one in mine)
    return (
        f"{name} layers, one rank sleeps {_listed(int(one['sleep_ms']) for one in mine)} ms in each step",
        f"{_listed(one.get('typical_ms', '–') for one in mine)} ms; rank and line {f'wrong in {wrong}' if wrong else 'right'}",
    )


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
