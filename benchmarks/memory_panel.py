"""How long the panel *Memory* waits for its chart, and for the lines of its buffers, which come after it.

    .venv/bin/python benchmarks/memory_panel.py STORE [RUN]
    .venv/bin/python benchmarks/memory_panel.py --nodes 20000 [--answer FILE]

STORE is one that `benchmarks/large.py --keep STORE` has written, or any other; of the run the compile with the most
operations is taken.  With `--nodes` a run with a made-up graph, schedule and plan of so many nodes is written and read,
since a compile of that size takes hours; `--answer` keeps the chart's answer for `benchmarks/memory_page.mjs`, which
measures the drawing.  Printed are the processor times of both answers, with all that is read for them, how many times
longer an answer with both would take than the chart's alone, and the size of that.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from irscope.protocol import Compile, CompileOutcome, Lane, Outcome, OutcomeKind, StageRef
from irscope.store.store import Store
from irscope_server.view.reader import Reader

GOAL_SECONDS = 1.0


def cpu_seconds(what: Callable[[], str]) -> tuple[float, str]:
    """Processor time of a call, and what it returns."""
    began = time.process_time()
    answer = what()
    return time.process_time() - began, answer


def made_run(path: str, nodes: int) -> None:
    """Writes a run whose graph, schedules and memory plan have so many nodes, two of them in each kernel."""
    names = [f"mul_{at}" for at in range(nodes)]
    row = ["tensor", "float32", [64, 64], [64, 1], "cpu", 16384]
    graph = {
        "graph": 0, "views": [], "backward": [], "targets": ["aten.mul.Tensor"], "values": [row], "sources": [],
        "frames": [["/made.py", 1 + at, "forward"] for at in range(100)], "stacks": [[at] for at in range(100)],
        "modules": [[f"L['self']._modules['layers']._modules['{at}']", "Block"] for at in range(200)],
        "symbols": {}, "subgraphs": {},
        "nodes": {
            "name": names, "op": ["call_function"] * nodes, "target": [0] * nodes, "value": [0] * nodes,
            "inputs": [[at - 1] if at else [] for at in range(nodes)], "flops": [None] * nodes,
            "stack": [at % 100 for at in range(nodes)], "module": [at * 200 // nodes for at in range(nodes)],
            "aten": [0] * nodes, "seq": [None] * nodes, "from": [[]] * nodes,
        },
    }  # fmt: skip
    schedule = [_scheduled(at) for at in range(nodes)]
    fused = [_fused(at) for at in range(0, nodes - 1, 2)]
    steps = len(fused)
    buffers: list[dict[str, Any]] = [
        {
            "name": f"buf{at}", "bytes": 1024 * (1 + at % 64), "dtype": "float32", "device": "cpu", "how": "allocated",
            "of": "", "first": at // 2, "last": steps - 1 if at % 9 == 0 else min(steps - 1, at // 2 + 5), "output": at % 9 == 0,
        }
        for at in range(2 * steps)
    ]  # fmt: skip
    change = [0] * (steps + 1)
    for one in buffers:
        change[one["first"]] += one["bytes"]
        change[one["last"] + 1] -= one["bytes"]
    live = [sum(change[:1])]
    for by in change[1:steps]:
        live.append(live[-1] + by)
    plan = {
        "steps": [{"kernel": node["kernel"].partition(":")[0], "live": size} for node, size in zip(fused, live, strict=True)],
        "buffers": buffers, "outputs": [], "inputs": [["primals_1", 16384]],
        "peak": {"bytes": max(live), "step": live.index(max(live)), "holds": []},
    }  # fmt: skip
    text = "".join(f"{one['name']:<16}{one['bytes']:>8}  {one['first']}-{one['last']}\n" for one in buffers)
    blocks = "".join(f"{one['name']}: SchedulerNode(ComputedBuffer)\n{one['name']}.writes = []\n\n\n" for one in fused)
    stages = [("post-grad-graph", "", graph), ("ir-pre-fusion", blocks, {"nodes": schedule}),
              ("ir-post-fusion", blocks, {"nodes": fused}), ("memory-plan", text, plan)]  # fmt: skip
    with Store(path) as store:
        run = store.create_run("/made.py", [], Lane.DEEP, "digest")
        store.put_compile(run, Compile("0/0", "forward", "/made.py", 1, CompileOutcome.COMPILED, 0, nodes, 1.0, ()))
        for position, (name, content, data) in enumerate(stages):
            ref = StageRef(f"0/0/{name}", name, "python", len(content))
            store.put_stage(run, "0/0", ref, content, float(position), data)
        store.set_outcome(run, Outcome(OutcomeKind.COMPLETED, 0, "", 1.0))


def _scheduled(at: int) -> dict[str, Any]:
    return {
        "name": f"op{at}", "kind": "SchedulerNode", "parts": [f"op{at}"], "origins": [f"mul_{at}"],
        "reads": [[f"buf{at - 1}", 16384]], "writes": [[f"buf{at}", 16384]], "device": "cpu",
    }  # fmt: skip


def _fused(at: int) -> dict[str, Any]:
    first, second = _scheduled(at), _scheduled(at + 1)
    return {
        **first, "name": f"op{at}_op{at + 1}", "kind": "FusedSchedulerNode", "parts": [f"op{at}", f"op{at + 1}"],
        "origins": first["origins"] + second["origins"], "writes": first["writes"] + second["writes"],
        "kernel": f"cpp_fused_mul_{at % 50}:{at}",
    }  # fmt: skip


def main() -> int:
    """Returns the exit code: 1 if the chart takes longer than its goal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", nargs="?")
    parser.add_argument("run", nargs="?")
    parser.add_argument("--nodes", type=int, help="a made-up run with so many nodes")
    parser.add_argument("--answer", metavar="FILE", help="where the chart's answer is written")
    options = parser.parse_args()
    if (options.store is None) == (options.nodes is None):
        parser.error("name a store, or --nodes")
    with tempfile.TemporaryDirectory() as folder:
        store = options.store or str(Path(folder, "runs.db"))
        if options.nodes is not None:
            made_run(store, options.nodes)
        return measure(store, options.run, options.answer)


def measure(store: str, named: str | None, kept: str | None) -> int:
    """Prints the times; returns 1 if the chart takes longer than its goal."""
    reader = Reader(store)
    try:
        run = named or json.loads(reader.answer("irscope/runs", {"limit": 1}))["runs"][0]["run"]
        reader.answer("irscope/runs", {"limit": 1})  # what is imported for the first answer is not counted
        chart, text = cpu_seconds(lambda: reader.answer("irscope/memory", {"run": run}))
        places, _ = cpu_seconds(lambda: reader.answer("irscope/memoryPlaces", {"run": run}))
    finally:
        reader.close()
    if kept is not None:
        Path(kept).write_text(text, encoding="utf-8")
    plans = json.loads(text)["plans"]
    buffers = sum(len(plan["buffers"]) for plan in plans)
    print(f"{len(plans)} plans, {buffers} buffers, {len(text) / 1e6:.2f} MB")
    print(f"chart {chart:.2f} s, lines {places:.2f} s: together {(chart + places) / chart:.1f} times as long")
    return int(chart > GOAL_SECONDS)


if __name__ == "__main__":
    raise SystemExit(main())
