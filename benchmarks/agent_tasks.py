"""Questions of `agents.py` beyond one script: traces and ranks of jobs, pipelines, tests, errors, graphs, checks.

Every answer is known by how the script or the trace is made.
"""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_scripts import FAILS, IN_TESTS, KERNELS, MODULE, RANK_BRANCH, RANK_LATE, SIDE_BY_SIDE, STEPS, TWO_ROADS
from big_trace import TRACE
from many_ranks import written

_TRACES = {"job8": (8, 3), "job24": (24, 23), "job40": (40, 17)}
"""Folders of logs: how many ranks, and which of them compiled something else."""
_LONG = 500
"""Seconds for a script under a debugger, on a machine that has other work."""
_CHANGED_LINE = 12
"""Of the recorded script: where `many_ranks.diverging` puts another operation first."""


@dataclass
class Asked:
    """A question as it was put: the calls made for it, and the bytes of what they said."""

    ask: Callable[[str, dict[str, Any]], Awaitable[str]]
    calls: int = 0
    bytes: int = 0
    said: list[str] = field(default_factory=list)

    async def __call__(self, tool: str, **arguments: Any) -> str:
        text = await self.ask(tool, arguments)
        self.calls += 1
        self.bytes += len(text.encode())
        self.said.append(text)
        return text


@dataclass(frozen=True)
class Task:
    """A question.

    Args:
        recipe: Makes the calls.
        answered: Whether the answer is in what was said.
        script, logs, eager: What `TORCH_LOGS` is asked for the same: the script, the names, and whether the backend
            does not matter.  Without names: the folder of a trace.
        in_log: Whether the answer is in that log.
    """

    kind: str
    name: str
    script: str
    logs: str
    recipe: Callable[[Asked], Awaitable[None]]
    answered: Callable[[str], bool]
    in_log: Callable[[str], bool]
    eager: bool = False


def run_of(text: str) -> str:
    """The ID of the run in an answer.  Raises SystemExit if there is none."""
    match = re.match(r"run=(\S+)", text)
    if match is None:
        sys.exit(f"no run in the answer: {text[:1000]}")
    return match[1]


def never(text: str) -> bool:
    """That a log has the answer: PyTorch's of one process says nothing about others, or about other compilers."""
    return False


def traces(folder: Path, python: str) -> list[Task]:
    """Which rank of a recorded job diverges, and where?"""
    tasks = []
    for name, (ranks, other) in _TRACES.items():
        (folder / name).mkdir()
        written(folder / name, [gzip.decompress(TRACE.read_bytes())], ranks, other)

        async def recipe(asked: Asked, name: str = name) -> None:
            run = await asked("run", trace=name)
            await asked("findings", run=run_of(run), ranks=True)

        def answered(said: str, other: int = other) -> bool:
            return bool(re.search(rf":{_CHANGED_LINE}: rank-divergence \S+ on ranks 0, {other}: ", said))

        tasks.append(Task("trace", f"{name}: rank {other} of {ranks}", name, "", recipe, answered, never))
    return tasks


def ranks(folder: Path, python: str) -> list[Task]:
    """Which rank of a job compiles another graph, at which line; which one keeps the others waiting?"""
    tasks = []
    line = RANK_BRANCH.split("\n").index("        y = y * 3") + 1
    for odd in (1, 5):
        script = f"branch{odd}.py"
        (folder / script).write_text(RANK_BRANCH.replace("{odd}", str(odd)))

        async def recipe(asked: Asked, script: str = script, odd: int = odd) -> None:
            run = await asked("run", script=script, lane="fast", world=8, ranks=f"0,{odd}")
            await asked("findings", run=run_of(run), ranks=True)

        def answered(said: str, script: str = script, odd: int = odd) -> bool:
            found = re.search(rf"{script}:(\d+): rank-divergence \S+ on ranks 0, {odd}: .*y \* 3", said)
            return found is not None and abs(int(found[1]) - line) <= 1  # there, or at the statement that follows

        tasks.append(Task("rank", f"{script}: rank {odd} of 8", script, "graph_code", recipe, answered, never))
    for late in (0, 1):
        script = f"late{late}.py"
        (folder / script).write_text(RANK_LATE.replace("{late}", str(late)))

        async def wait(asked: Asked, script: str = script) -> None:
            run = await asked("run", script=script, lane="fast", nproc=2)
            await asked("findings", run=run_of(run), ranks=True)

        def waited(said: str, script: str = script, late: int = late) -> bool:
            return bool(re.search(rf"all_reduce .*rank {late} \(3 of 3\).*{script}:12", said))

        tasks.append(Task("rank", f"{script}: rank {late} of 2", script, "graph_code", wait, waited, never))
    return tasks


def pipelines(folder: Path, python: str) -> list[Task]:
    """What did another compiler leave behind, and at which line?"""
    line = TWO_ROADS.split("\n").index("        return {operation}") + 1
    roads = {"export": ("y * 2 if y.sum() > 0 else y", rf"left behind: .*\.py:{line}\)")}
    if (
        subprocess.run([python, "-c", "import onnxscript, onnxruntime"], capture_output=True, check=False).returncode
        == 0
    ):
        roads["onnx"] = ("torch.special.bessel_j0(y)", rf"left behind: .*\.py:{line}\).*bessel_j0")
    tasks = []
    for name, (operation, wanted) in roads.items():
        script = f"through_{name}.py"
        (folder / script).write_text(TWO_ROADS.replace("{operation}", operation))

        async def recipe(asked: Asked, script: str = script, name: str = name) -> None:
            await asked("diff", script=script, pipelines=["inductor", name])

        def answered(said: str, name: str = name, wanted: str = wanted) -> bool:
            return bool(re.search(wanted, said.partition(f"\n{name}  ")[2]))

        tasks.append(Task("pipeline", f"{script}:{line}", script, "graph_breaks", recipe, answered, never, eager=True))
    return tasks


def tests(folder: Path, python: str) -> list[Task]:
    """Which line of which test breaks?"""
    (folder / "test_two.py").write_text(IN_TESTS)
    line = IN_TESTS.split("\n").index('        print("here")') + 1

    async def recipe(asked: Asked) -> None:
        await asked("run", pytest="test_two.py", lane="fast")

    def answered(said: str) -> bool:
        return f"test_two.py:{line}:9 graph-break" in said and said.count("graph-break GB") == 1

    return [Task("test", f"test_two.py:{line}", "test_two.py", "graph_breaks", recipe, answered, never)]


def errors(folder: Path, python: str) -> list[Task]:
    """Does the script fail without compile, too?"""
    tasks = []
    for name, text in FAILS.items():
        script = f"fails_{name}.py"
        (folder / script).write_text(text)

        async def recipe(asked: Asked, script: str = script) -> None:
            run = await asked("run", script=script, lane="fast", check_without_compile=True)
            await asked("findings", run=run_of(run), kind="compiled-code-error")

        def answered(said: str, name: str = name) -> bool:
            return _SAID[name] in said

        tasks.append(Task("error", script, script, "graph_breaks", recipe, answered, never))
    return tasks


_SAID = {"compiled": "Without compile the script works", "always": "It fails without compile, too"}


def checks(folder: Path, python: str) -> list[Task]:
    """Is a function compiled once only?"""
    tasks = []
    for name, text in STEPS.items():
        script = f"steps_{name}.py"
        (folder / script).write_text(text)

        async def recipe(asked: Asked, script: str = script) -> None:
            await asked("run", script=script, lane="fast", checks=["none", "max-recompiles=0"])

        def answered(said: str, name: str = name) -> bool:
            return "steps_" in said and ("over its bound" in said) == (name == "again")

        tasks.append(Task("check", script, script, "recompiles", recipe, answered, answered, eager=True))
    return tasks


def graphs(folder: Path, python: str) -> list[Task]:
    """What does a node take, and who takes it?"""
    text = next(text for text, _ in KERNELS.values() if "a = x.sin()" in text)
    (folder / "chain_of_nodes.py").write_text(text)
    tasks = []
    for node, wanted in {"b": r"^b = .*<- a, ", "e": r"^g = matmul .*<- e\b", "i": r"^i = .*<- h, "}.items():

        async def recipe(asked: Asked, node: str = node) -> None:
            run = await asked("run", script="chain_of_nodes.py", lane="fast")
            await asked("stage", run=run_of(run), stage="0/0/dynamo-graph", node=node, around=1)

        def answered(said: str, wanted: str = wanted) -> bool:
            return bool(re.search(wanted, said, re.MULTILINE))

        tasks.append(Task("graph", f"chain_of_nodes.py: {node}", "chain_of_nodes.py", "graph_code", recipe, answered, lambda text: "torch.exp" in text, eager=True))  # fmt: skip
    return tasks


def running(folder: Path, python: str) -> list[Task]:
    """What is a value at a line of the running script, and where is the line of a breakpoint that it never reaches?"""
    tasks = []
    for factor in (5, 7):
        script = f"side_{factor}.py"
        (folder / script).write_text(SIDE_BY_SIDE.replace("{factor}", str(factor)))

        async def value(asked: Asked, script: str = script) -> None:
            await asked(
                "debug",
                program=script,
                script=True,
                breakpoints=[f"{script}:14 if step == 3"],
                evaluate=["total"],
                seconds=_LONG,
            )

        def valued(said: str, factor: int = factor) -> bool:
            return f"\ntotal = {float(factor * 3)}\n" in said

        tasks.append(Task("running", f"{script}: a value", script, "graph_code", value, valued, never))

    async def missed(asked: Asked) -> None:
        await asked("run", script="side_5.py")
        await asked("debug", program="side_5.py", script=True, breakpoints=["side_5.py:6"], seconds=_LONG)

    def met(said: str) -> bool:
        told = said.partition("breakpoint side_5.py:6: not reached. Compiled code ran")[2]
        return bool(re.search(r"kernel cpp_fused_\w*sin\w*_0\b", told))

    async def reached(asked: Asked) -> None:
        await asked(
            "debug", program="side_7.py", script=True, breakpoints=["side_7.py:7 if x[0] == 2"], without_compile=True,
            evaluate=["float(x[0])"], seconds=_LONG,
        )  # fmt: skip

    def was_reached(said: str) -> bool:
        return "model at side_7.py:7" in said and "\nfloat(x[0]) = 2.0\n" in said

    tasks.append(Task("running", "side_5.py:6: not reached", "side_5.py", "output_code", missed, met, never))
    tasks.append(
        Task("running", "side_7.py:7: without compile", "side_7.py", "graph_code", reached, was_reached, never)
    )
    return tasks


def modules(folder: Path, python: str) -> list[Task]:
    """Which line of a module, and of a model that an expression gives, breaks or becomes which kernel?"""
    (folder / "pkg_of_task").mkdir()
    (folder / "pkg_of_task" / "__init__.py").write_text("")
    (folder / "pkg_of_task" / "train.py").write_text(MODULE)
    (folder / "a_model.py").write_text("import torch\n\n\ndef net(x):\n    return x.sin() + 1\n\n\nx = torch.ones(4)\n")

    async def module(asked: Asked) -> None:
        await asked("run", module="pkg_of_task.train", args=["--steps"], lane="fast")

    def broke(said: str) -> bool:
        return bool(re.search(r"pkg_of_task/train\.py:8:\d+ graph-break", said)) and "\n--steps tensor" in said

    async def model(asked: Asked) -> None:
        run = await asked("run", model="a_model.py:net", inputs="a_model.py:x")
        await asked("line", run=run_of(run), place="a_model.py:5")

    def became(said: str) -> bool:
        return bool(re.search(r"kernel cpp_fused_\w*sin\w*_0\b", said.partition("a_model.py:5  ")[2]))

    script = "pkg_of_task/train.py"
    return [
        Task("module", "pkg_of_task.train:8", script, "graph_breaks", module, broke, never, eager=True),
        Task("module", "a_model.py:net", script, "graph_breaks", model, became, never, eager=True),
    ]


def verified(folder: Path, python: str) -> list[Task]:
    """Are the kernels those that were predicted for the device?  Without a GPU the answer is that there is none."""
    (folder / "to_verify.py").write_text(
        SIDE_BY_SIDE.replace("{factor}", "3")
        .replace("(4,), ", "(4,), device=DEVICE, fill_value=")
        .replace("import torch\n", 'import torch\n\nDEVICE = "cuda" if torch.cuda.is_available() else "cpu"\n', 1)
    )
    has_gpu = subprocess.run([python, "-c", "import torch, sys; sys.exit(not torch.cuda.is_available())"], check=False).returncode == 0  # fmt: skip

    async def recipe(asked: Asked) -> None:
        await asked("run", script="to_verify.py", target="h100", verify=True)

    def answered(said: str) -> bool:
        if not has_gpu:
            return "ran without a GPU, not on NVIDIA H100" in said
        return "The prediction holds" in said or "not on NVIDIA H100" in said

    return [Task("verify", "to_verify.py", "to_verify.py", "graph_breaks", recipe, answered, never, eager=True)]


BEYOND: dict[str, Callable[[Path, str], list[Task]]] = {
    "trace": traces,
    "rank": ranks,
    "pipeline": pipelines,
    "test": tests,
    "error": errors,
    "check": checks,
    "graph": graphs,
    "running": running,
    "module": modules,
    "verify": verified,
}
"""By kind of question, as `agents.MAKERS`."""
