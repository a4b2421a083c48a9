"""Whether an agent gets to the answer: questions with known answers, put to `irscope mcp` by a scripted client.

    python benchmarks/agents.py [--only KIND …] [--without-logs] [--python PATH] [--json FILE]

Each question has a recipe of at most three calls, which does not know the answer.  It is answered if what must be said
is in what the tools said.  Counted are the calls and the bytes of their answers, and beside them the bytes that
`TORCH_LOGS` prints for the same script, with the narrowest names that could answer it; of a trace the bytes of its logs.

What is true does not come from irscope: of graph breaks and guards it is what `tests/cases` measured with PyTorch's own
records; of kernels what is in the script by construction, and in the output code that PyTorch logs; of fusion what
PyTorch's log says of a pair; of passes the pass that the script planted; of ranks the one that the script or the trace makes different or late; of
pipelines the operator that ONNX has not, or the branch that torch.export cannot take; of tests, errors and graphs what is
in the script.  A model is break-free if PyTorch logs no graph
break of the script as the tool left it, and the script ends well.

One of the questions can count on a run that another one has started: its call and its bytes count for each of them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent_scripts import APART, BREAKING, KERNELS, PLANTED
from agent_tasks import BEYOND, Asked, Task, run_of
from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.stdio import stdio_client

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from truth import CASES, case_names, truth_of

MOST_CALLS, MOST_BYTES = 3, 12_000
_GUARDS_OF_A_CASE = 2
_PAIRS = 8
# A graph from the cache is not logged again.
_NO_GRAPH_CACHE = {"TORCHINDUCTOR_FX_GRAPH_CACHE": "0", "TORCHINDUCTOR_AUTOGRAD_CACHE": "0"}
_EAGER = (
    "import sys, runpy, torch; c = torch.compile; "
    "torch.compile = lambda *a, **k: c(*a, **{**{n: v for n, v in k.items() if n not in ('mode', 'options')}, 'backend': 'eager'}); "
    "sys.argv = sys.argv[1:]; sys.path[0] = ''; runpy.run_path(sys.argv[0], run_name='__main__')"
)
"""Graph breaks and recompilations are the same with the eager backend, and no kernels are compiled for them."""


def main() -> int:
    """Prints a line for each question and a table; returns 1 if one is not answered within the bounds."""
    parser = argparse.ArgumentParser(description="Asks irscope mcp questions with known answers.")
    parser.add_argument("--only", nargs="+", default=[], help="only questions of these kinds")
    parser.add_argument("--without-logs", action="store_true", help="do not ask TORCH_LOGS, except for what is true")
    parser.add_argument(
        "--python", default=sys.executable, help="interpreter that runs scripts; ONNX is asked if it has it"
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    for name in [name for name in os.environ if name.startswith(("TORCH", "IRSCOPE"))]:
        del os.environ[name]
    with tempfile.TemporaryDirectory(prefix="irscope-agents-") as name:
        folder = Path(name)
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "kernels")
        makers = [maker for kind, maker in MAKERS.items() if not options.only or kind in options.only]
        tasks = [task for maker in makers for task in maker(folder, options.python)]
        rows = asyncio.run(put(tasks, folder, options.python, with_logs=not options.without_logs))
    print("\n".join(table(rows)))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return int(not all(row["answered"] and row["calls"] <= MOST_CALLS and row["bytes"] <= MOST_BYTES for row in rows))


# --- the questions ----------------------------------------------------------------------------------------------------


def _cases(folder: Path) -> tuple[str, ...]:
    shutil.copytree(CASES / "scripts", folder, dirs_exist_ok=True)
    return tuple(case_names())


def all_kernels(folder: Path, python: str) -> list[Task]:
    """Which kernel did a line become?"""
    for name, (text, _) in KERNELS.items():
        (folder / f"{name}.py").write_text(text)
    return [kernel(name, text, start, word) for name, (text, lines) in KERNELS.items() for start, word in lines.items()]


def all_pairs(folder: Path, python: str) -> list[Task]:
    """Why were two not fused?"""
    (folder / "apart.py").write_text(APART)
    pairs = re.findall(r"cannot fuse (op\d+) with (op\d+): (.+)", log(folder, "apart.py", "fusion", False))
    return [apart(*pair) for pair in sorted(set(pairs))[:_PAIRS]]


def all_planted(folder: Path, python: str) -> list[Task]:
    """Which pass changed a number?"""
    for name, text in PLANTED.items():
        (folder / f"{name}.py").write_text(text)
    return [planted(name) for name in PLANTED]


def all_breaking(folder: Path, python: str) -> list[Task]:
    """Make this model break-free."""
    for name, text in BREAKING.items():
        (folder / f"breaking_{name}.py").write_text(text)
    return [breaking(folder, f"breaking_{name}.py") for name in BREAKING]


def breaks(case: str) -> list[Task]:
    """Which line breaks, and why?"""
    tasks = []
    for fact in truth_of(case)["breaks"]:
        place = f"{fact['file']}:{fact['line']}:"
        codes = [fact["gb"], *fact.get("chain", [])]

        async def recipe(asked: Asked) -> None:
            run = await asked("run", script=f"{case}.py", lane="fast")
            await asked("findings", run=run_of(run), kind="graph-break")

        def answered(said: str, place: str = place, codes: list[str] = codes) -> bool:
            return any(re.search(rf"{re.escape(place)}\d+ graph-break {code}", said) for code in codes)

        def in_log(text: str, fact: dict[str, Any] = fact) -> bool:
            return bool(re.search(rf'{re.escape(fact["file"])}"?(?::|, line ){fact["line"]}\b', text))

        tasks.append(Task("break", place, f"{case}.py", "graph_breaks", recipe, answered, in_log, eager=True))
    return tasks


def guards(case: str) -> list[Task]:
    """Which guard failed?"""
    tasks = []
    for fact in truth_of(case)["recompiles"][:_GUARDS_OF_A_CASE]:
        guard = re.split(r"\s+#", fact["reasons"][0].partition(": ")[2].partition("\n")[0])[0].strip()

        async def recipe(asked: Asked) -> None:
            run = await asked("run", script=f"{case}.py", lane="fast")
            await asked("findings", run=run_of(run), kind="recompilation")

        def answered(said: str, guard: str = guard) -> bool:
            return plain(guard) in plain(said)

        tasks.append(Task("guard", f"{case} {fact['compile_id']}: {guard}"[:90], f"{case}.py", "recompiles", recipe, answered, answered, eager=True))  # fmt: skip
    return tasks


def kernel(name: str, text: str, start: str, word: str) -> Task:
    """Which kernel did a line become?"""
    number = next(at for at, line in enumerate(text.split("\n"), 1) if line.strip().startswith(start))

    async def recipe(asked: Asked) -> None:
        run = await asked("run", script=f"{name}.py")
        await asked("line", place=f"{name}.py:{number}", run=run_of(run))

    def answered(said: str) -> bool:
        return bool(re.search(rf"kernel cpp_fused_\w*{word}\w*_\d+\b", said.partition(f"{name}.py:{number}  ")[2]))

    def in_log(text: str) -> bool:
        return bool(re.search(rf"cpp_fused_\w*{word}\w*_\d+\b", text))

    return Task("kernel", f"{name}.py:{number} ({word})", f"{name}.py", "output_code", recipe, answered, in_log)


def apart(first: str, second: str, reason: str) -> Task:
    """Why were two not fused?"""

    async def recipe(asked: Asked) -> None:
        run = await asked("run", script="apart.py")
        await asked("why_not_fused", run=run_of(run), first=first, second=second)

    def answered(said: str) -> bool:
        return reason in said

    return Task("fusion", f"{first} {second}: {reason}"[:90], "apart.py", "fusion", recipe, answered, answered)


def planted(hook: str) -> Task:
    """Which pass changed a number?"""

    async def recipe(asked: Asked) -> None:
        await asked("values", script=f"{hook}.py")

    def answered(said: str) -> bool:
        return f"The pass {hook}(change) changed" in said

    return Task(
        "pass", hook, f"{hook}.py", "aot_graphs,post_grad_graphs,ir_pre_fusion", recipe, answered, lambda text: False
    )


def breaking(folder: Path, script: str) -> Task:
    """Make this model break-free."""

    async def recipe(asked: Asked) -> None:
        await asked("try_fix", script=script, apply=True)

    def answered(said: str) -> bool:
        return "Graph break" not in log(folder, script, "graph_breaks", True, must_end_well=True)

    return Task("fix", script, script, "graph_breaks", recipe, answered, lambda text: False, eager=True)


MAKERS: dict[str, Callable[[Path, str], list[Task]]] = {
    "break": lambda folder, python: [task for name in _cases(folder) for task in breaks(name)],
    "guard": lambda folder, python: [task for name in _cases(folder) for task in guards(name)],
    "kernel": all_kernels,
    "fusion": all_pairs,
    "pass": all_planted,
    "fix": all_breaking,
    **BEYOND,
}
"""By kind of question: writes the scripts into a folder, and returns the questions."""


def plain(text: str) -> str:
    """A guard without the ways of writing a name: ``L['n']`` is ``n``."""
    return re.sub(r"\s+", "", re.sub(r"\b[LG]\['(\w+)'\]", r"\1", text))


# --- asking -----------------------------------------------------------------------------------------------------------


async def put(tasks: list[Task], folder: Path, python: str, *, with_logs: bool) -> list[dict[str, Any]]:
    """Asks everything; the same call is made once."""
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "irscope", "mcp", "--allow-run", f"--store={folder / 'runs.db'}", f"--python={python}"],
        cwd=folder, env=dict(os.environ),
    )  # fmt: skip
    known: dict[str, str] = {}
    logs: dict[tuple[str, str], str] = {
        (task.script, task.logs): log(folder, task.script, task.logs, task.eager) if with_logs else ""
        for task in {(task.script, task.logs): task for task in tasks}.values()
    }
    rows = []
    async with Client(stdio_client(server)) as client:

        async def ask(tool: str, arguments: dict[str, Any]) -> str:
            key = json.dumps([tool, arguments])
            if key not in known:
                result = await client.call_tool(tool, arguments, read_timeout_seconds=600)
                known[key] = str(getattr(result.content[0], "text", ""))
            return known[key]

        for task in tasks:
            asked = Asked(ask)
            await task.recipe(asked)
            text = logs[task.script, task.logs]
            row = {
                "kind": task.kind, "name": task.name, "answered": task.answered("\n".join(asked.said)),
                "calls": asked.calls, "bytes": asked.bytes, "log_bytes": len(text.encode()), "in_log": task.in_log(text),
            }  # fmt: skip
            rows.append(row)
            figures = f"{asked.calls} calls {asked.bytes:>6,} bytes {row['log_bytes']:>7,} {'in log' if row['in_log'] else ''}"
            print(f"{'ok ' if row['answered'] else 'NOT'} {task.kind:9} {figures:40} {task.name}", flush=True)
            if not row["answered"]:
                print("\n".join(f"      {line}" for line in "\n".join(asked.said)[-1500:].split("\n")), flush=True)
    return rows


def log(folder: Path, script: str, names: str, eager: bool, must_end_well: bool = False) -> str:
    """What `TORCH_LOGS` prints for a script; *Graph break* if it must end well and does not."""
    if not names:
        return "".join(path.read_text(errors="replace") for path in sorted((folder / script).iterdir()))
    start = ["-c", _EAGER, script] if eager else [script]
    done = subprocess.run(
        [sys.executable, *start], cwd=folder, env={**os.environ, **_NO_GRAPH_CACHE, "TORCH_LOGS": names}, capture_output=True, text=True,
        errors="replace", timeout=600, check=False,
    )  # fmt: skip
    if must_end_well and done.returncode != 0:
        return f"Graph break: the script failed: {done.stderr}"
    return done.stderr


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Figures for each kind of question, and for all."""
    lines = ["", "| question | tasks | answered | most calls | bytes: median, most | TORCH_LOGS: median, most | in the log |", "|---|---|---|---|---|---|---|"]  # fmt: skip
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    for kind in (*kinds, "all"):
        those = [row for row in rows if kind in (row["kind"], "all")]
        sizes, logged = [row["bytes"] for row in those], [row["log_bytes"] for row in those]
        lines.append(
            f"| {kind} | {len(those)} | {sum(row['answered'] for row in those)} | {max(row['calls'] for row in those)} | "
            f"{statistics.median(sizes):,.0f}, {max(sizes):,} | {f'{statistics.median(logged):,.0f}, {max(logged):,}' if any(logged) else '–'} | "
            f"{sum(row['in_log'] for row in those) if any(logged) else '–'} |"
        )
    return lines


if __name__ == "__main__":
    sys.exit(main())
