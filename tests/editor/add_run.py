"""Adds a run of a script to a store: `add_run.py STORE SCRIPT BREAKS`, with so many graph breaks and a graph of as many ops.

Prints its id.
"""

from __future__ import annotations

import sys

from irscope.protocol import (
    Compile,
    CompileOutcome,
    Finding,
    Lane,
    Outcome,
    OutcomeKind,
    Position,
    Range,
    Severity,
    StageRef,
)
from irscope.store.store import Store


def main(path: str, script: str, breaks: int) -> None:
    with open(script, encoding="utf-8") as file:
        source = file.read()
    with Store(path) as store:
        run = store.create_run(script, [], Lane.DEEP, "digest")
        store.set_torch(run, "2.13.0")
        store.put_compile(run, Compile("0/0", "model", script, 4, CompileOutcome.COMPILED, 0, breaks, 1.0 + breaks, ()))
        for position, name in enumerate(("dynamo-graph", "output-code")):
            text = f"# {name} of a run with {breaks} breaks\n" + "relu = torch.relu(x)\n" * breaks
            store.put_stage(run, "0/0", StageRef(f"0/0/{name}", name, "python", len(text)), text, float(position))
        store.put_source(run, script, source)
        for line in range(1, breaks + 1):
            place = Range(Position(line, 0), Position(line, 5))
            store.put_finding(
                run,
                Finding(
                    "graph-break", "GB0059", Severity.WARNING, f"Graph break {line}.", "", (), None, script, place, 1, ("0/0",)
                ),
            )  # fmt: skip
        store.set_outcome(run, Outcome(OutcomeKind.COMPLETED, 0, "The script ran to its end.", 2.0))
    print(run)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
