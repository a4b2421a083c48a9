"""How fast the debug adapter steps through a large run, and how soon a session on it has begun.

    python benchmarks/debugger.py [--nodes 20000] [--steps 2000] [--instructions 20000] [--store FILE --compile 0/0]

The run is made up: three graphs of so many nodes each, and another one with a symbolic trace of so many instructions,
ten calls deep.  With ``--store`` the trace is that of a compile of a stored run instead.  A *start* is from the start
of the process to the first stop.  A *step* is what an editor waits for: the request, the stop, the call stack, the
scopes and the variables of the first of them; in the trace those of the symbolic stack and of the locals.  Steps are
over, in, out and back, at random places; the first step into a stage reads it, and is shown on its own.
Nothing else should run on the machine meanwhile.  The bounds are those of the issue; where one is missed the exit code
is 1.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "protocol"))

from dap_client import Client
from dap_runs import large_run, long_trace

BOUNDS = {
    "start, s": 1.0,
    "step p99, ms": 50.0,
    "trace: start, s": 1.0,
    "trace: step p99, ms": 50.0,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--steps", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=5, help="of the start")
    parser.add_argument("--instructions", type=int, default=20_000, help="of the symbolic trace")
    parser.add_argument("--store", help="a run store with its own symbolic trace")
    parser.add_argument("--compile", default="0/0", help="of that run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "runs.db"
        script = large_run(store, Path(folder), options.nodes)
        measured = {"start, s": statistics.median(_start(str(store)) for _ in range(options.rounds))}
        steps, first = _steps(str(store), options.nodes, options.steps)
        steps.sort()
        measured["step p50, ms"] = statistics.median(steps) * 1000
        measured["step p99, ms"] = steps[int(len(steps) * 0.99)] * 1000
        measured["step max, ms"] = steps[-1] * 1000
        measured["first visit of a stage, ms"] = max(first) * 1000
        measured["continue to the last node, ms"] = _continue(str(store), script) * 1000
        traced = options.store or str(Path(folder) / "trace.db")
        if not options.store:
            long_trace(Path(traced), Path(folder), options.instructions)
        measured["trace: start, s"] = statistics.median(_start(traced) for _ in range(options.rounds))
        count, steps, visits = _trace_steps(traced, options.compile, options.steps)
        steps.sort()
        measured["trace: instructions"] = count
        measured["trace: first visit, ms"] = visits[0] * 1000
        measured["trace: first visit of a stage, ms"] = max(visits) * 1000
        measured["trace: step p50, ms"] = statistics.median(steps) * 1000
        measured["trace: step p99, ms"] = steps[int(len(steps) * 0.99)] * 1000
        measured["trace: step max, ms"] = steps[-1] * 1000
    missed = 0
    for name, value in measured.items():
        bound = BOUNDS.get(name)
        missed += bound is not None and value > bound
        print(f"{name:32} {value:9.2f}{f'   (at most {bound:g})' if bound is not None else ''}")
    return 1 if missed else 0


def _start(store: str) -> float:
    begun = time.perf_counter()
    with Client() as client:
        client.attach(store)
        client.stack()
        return time.perf_counter() - begun


def _steps(store: str, nodes: int, count: int) -> tuple[list[float], list[float]]:
    """Seconds of each step, and of those that came to a stage for the first time."""
    rng = random.Random(0)
    taken, first = [], []
    with Client() as client:
        client.attach(store)
        first.append(_timed(client, "next"))
        for _ in range(3):
            first.append(_timed(client, "stepIn"))
        source = client.top()["source"]
        for number in range(count):
            if number % 50 == 0:  # somewhere else
                line = rng.randrange(3, nodes * 3)
                target = client.ask("gotoTargets", source=source, line=line)["targets"][0]["id"]
                client.ask("goto", threadId=1, targetId=target)
                client.event("stopped")
            taken.append(_timed(client, rng.choice(["next", "stepIn", "stepOut", "stepBack"])))
    return taken, first


def _trace_steps(store: str, compile: str, count: int) -> tuple[int, list[float], list[float]]:
    """How many instructions there are, the seconds of each step, and those of steps to a stage that was not visited,
    the trace first."""
    rng = random.Random(0)
    taken: list[float] = []
    visits: list[float] = []
    visited: set[str] = set()
    with Client() as client:
        client.attach(store)
        names = [thread["name"].split()[0] for thread in client.ask("threads")["threads"]]
        thread = names.index(compile) + 1
        sources = client.ask("loadedSources")["sources"]
        source = next(each for each in sources if each["name"] == f"{compile} symbolic-trace.txt")
        lines = client.ask("source", source=source, sourceReference=source["sourceReference"])["content"].count("\n")
        begun = time.perf_counter()
        client.move("stepIn", thread)
        visits.append(time.perf_counter() - begun + _looked_at(client, thread))
        client.move("next", thread)  # by line for the first time
        instructions = int(client.evaluate("step.steps", thread))
        for number in range(count):
            if number % 50 == 0:  # somewhere else
                target = client.ask("gotoTargets", source=source, line=rng.randrange(1, lines))["targets"][0]["id"]
                client.ask("goto", threadId=thread, targetId=target)
                client.event("stopped")
            command = rng.choice(["next", "next", "stepIn", "stepOut", "stepBack"])
            begun = time.perf_counter()
            client.move(command, thread, granularity=rng.choice(["statement", "instruction"]))
            seconds = time.perf_counter() - begun + _looked_at(client, thread)
            stage = client.top(thread)["name"].partition(" [")[2]
            (visits if stage not in visited else taken).append(seconds)
            visited.add(stage)
    return instructions, taken, visits


def _looked_at(client: Client, thread: int) -> float:
    """Seconds until an editor has drawn the place: call stack, scopes, symbolic stack and locals."""
    begun = time.perf_counter()
    frame = client.stack(thread)[0]["id"]
    scopes = {scope["name"]: scope for scope in client.ask("scopes", frameId=frame)["scopes"]}
    for name in ("Symbolic stack", "Locals"):
        if name in scopes:
            client.variables(scopes[name]["variablesReference"])
    return time.perf_counter() - begun


def _timed(client: Client, command: str) -> float:
    begun = time.perf_counter()
    client.move(command)
    frame = client.stack()[0]["id"]
    scopes = client.ask("scopes", frameId=frame)["scopes"]
    client.variables(scopes[0]["variablesReference"])
    return time.perf_counter() - begun


def _continue(store: str, script: str) -> float:
    """From the beginning to the node of the last graph that came from the last line."""
    with Client() as client:
        client.attach(store)
        client.ask(
            "setBreakpoints", source={"path": script}, breakpoints=[{"line": 1000, "condition": "'output' in users"}]
        )
        begun = time.perf_counter()
        client.move("continue")
        return time.perf_counter() - begun


if __name__ == "__main__":
    sys.exit(main())
