"""The tools: each starts a command of irscope and says what it is about.  Their docstrings are what an agent reads."""

from __future__ import annotations

import re
from typing import Literal

from irscope_server.agents import reports
from irscope_server.agents.answers import Answer, ToolFailure
from irscope_server.agents.commands import Commands, option, word, words
from irscope_server.agents.debugging import Debugging

_SLOWEST = 3600
_GRACE = 60.0
"""Seconds that a command gets beyond those of its script."""


class Tools:
    """At most ten, each a coroutine that returns an `Answer` or raises ToolFailure."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands

    async def run(
        self,
        script: str = "",
        args: list[str] | None = None,
        lane: Literal["deep", "fast"] = "deep",
        pipeline: str = "",
        target: str = "",
        seconds: int = 300,
    ) -> Answer:
        """Run a Python script under capture (needs --allow-run) and list its findings, compiles and kernels; without a
        script, list the stored runs.  lane "fast": graph breaks and recompilations only, in seconds; "deep": every stage
        down to the kernels.  pipeline: through another compiler than inductor (torchscript).  target: predict the kernels
        for a device, too (h100).  seconds: the script is stopped then."""
        if not script:
            return Answer(
                await self._commands.read("list"), note="Stored runs, newest first. findings(run=ID) tells more."
            )
        limit = _seconds(seconds)
        chosen = [f"--lane={lane}", *option("--pipeline", pipeline), *option("--target", target)]
        output = await self._commands.execute_json(
            ["run", "--json", *chosen, f"--budget={limit}", word(script, "script")], args or (), limit + _GRACE
        )
        return Answer(reports.summary(output), {"run": output["run"]})

    async def findings(
        self, run: str = "", finding: str = "", file: str = "", kind: str = "", guards: bool = False, compile: str = ""
    ) -> Answer:
        """Graph breaks, recompilations and other findings of a stored run: where, why, what to do.  run: its ID or prefix
        (default: the newest).  finding: one of them in full, by ID (F1) or code (GB0170).  file, kind
        ("recompilation"): only these.  guards: instead list the guards of each compile (of one: compile="0/0"), with
        those that failed first."""
        if guards:
            run = self._commands.run_id(run)
            shown = await self._commands.read("show", run, "--guards", *option("--compile", compile))
            return Answer(
                _compact(shown), {"run": run, "compile": compile}, "failed: the guard that caused a recompilation."
            )
        report = await self._report(run)
        found = [
            (id, one) for id, one in reports.numbered(report)
            if (not finding or finding in (id, one["code"])) and (not kind or kind == one["kind"])
            and (not file or one["file"].endswith(file)) and (not compile or compile in one["compiles"])
        ]  # fmt: skip
        if not found:
            known = ", ".join(f"{id} {one['code']}" for id, one in reports.numbered(report)[:40])
            raise ToolFailure(f"Run {report['run']} has no such finding. It has: {known or 'none'}.")
        return Answer(reports.told(report, found), {"run": report["run"]})

    async def line(self, place: str, run: str = "", target: str = "") -> Answer:
        """What a line of the user's source became: its kernels first, then its nodes in each stage, and why it has none.
        place: FILE:LINE, as in model.py:42.  target: what was predicted for a device that the run had (h100)."""
        text = await self._commands.read(
            "show", *words(run, "run"), f"--line={word(place, 'place')}", *option("--target", target)
        )
        head, _, rest = text.partition("\n")
        source, _, trail = rest.partition("\n")
        if "Nothing in this run came from this line." in trail:
            raise ToolFailure(
                f"Nothing in {head} came from {place}. Lines of findings and compiles: findings(run=...)."
            )
        lines = trail.split("\n")
        kernels = [line for line in lines if line.startswith("  kernel ")]
        others = [line for line in lines if not line.startswith("  kernel ")]
        return Answer("\n".join([source, *kernels, *others]), {"run": head.split(" ")[1]})

    async def why_not_fused(self, first: str, second: str, run: str = "", compile: str = "") -> Answer:
        """Why Inductor did or did not fuse two kernels.  first, second: kernels (cpp_fused_add_0, extern_kernels.mm), nodes
        of the schedule (op3) or of the post-grad graph (mul_1); compile: "0/0", if they are in several."""
        asked = [word(first, "first"), word(second, "second")]
        run = self._commands.run_id(run)
        text = await self._commands.read("explain", run, *option("--compile", compile), "--fusion", *asked)
        return Answer(text, {"run": run, "compile": compile})

    async def stage(
        self, stage: str = "", run: str = "", compile: str = "", kernel: str = "", lines: str = ""
    ) -> Answer:
        """The text of a stage, or of a kernel's source.  stage: ID (0/0/post-grad-graph) or name (output-code, guards,
        dynamo-graph, fusion, memory-plan); kernel: its name.  lines: only these, as in "40-90".  With neither stage nor
        kernel: the stages of a compile ("0/0"), or all compiles and kernels of the run."""
        if not stage and not kernel and not compile:
            report = await self._report(run)
            return Answer(reports.summary(report), {"run": report["run"]}, "stage(compile=ID) lists the stages of one.")
        run = self._commands.run_id(run)
        if stage:
            self._commands.need_stored(run, stage)
        chosen = [*option("--compile", compile), *option("--stage", stage), *option("--kernel", kernel)]
        text = await self._commands.read("show", run, *chosen, f"--python={self._commands.python}")
        ids = {"run": run, "compile": compile, "stage": stage, "kernel": kernel}
        return _cut(text, lines, ids)

    async def diff(self, before: str = "", after: str = "", stages: list[str] | None = None) -> Answer:
        """What changed between two runs: findings, compiles, kernels (default: the newest against the one before).  stages:
        instead compare one stage between the runs, or two stages of one run, by name or ID; graphs by structure."""
        asked = [word(one, "stage") for one in stages or ()]
        chosen = ["--stage", *asked[:2]] if asked else []
        before, after = (name and self._commands.run_id(name) for name in (before, after))
        text = await self._commands.read("diff", *words(before, "before"), *words(after, "after"), *chosen)
        return Answer(text, {"before": before, "after": after})

    async def values(
        self, script: str, args: list[str] | None = None, what: Literal["divergence", "values"] = "divergence",
        compile: str = "", stage: str = "", node: str = "", call: int = 1, seconds: int = 300,
    ) -> Answer:  # fmt: skip
        """Run a script and look at its numbers (needs --allow-run).  "divergence": the first node where compiled code
        differs from its graph, and the pass, lowering or kernel that made it so.  "values": what each node of a graph
        (stage="post-grad-graph") computes; node: one of them, with elements.  call: which call of the graph."""
        limit = _seconds(seconds)
        chosen = [*option("--compile", compile), f"--call={int(call)}", f"--budget={limit}"]
        if what == "values":
            command = ["values", *chosen, *option("--stage", stage), *option("--node", node)]
        else:
            command = ["diverge", *chosen]
        command.append(word(script, "script"))
        text = await self._commands.execute(command, args or (), limit + _GRACE, codes=(0, 1))
        return Answer(_compact(text), {"compile": compile, "stage": stage})

    async def try_fix(
        self, script: str, args: list[str] | None = None, only: str = "", apply: bool = False,
        measure: bool = False, seconds: int = 120,
    ) -> Answer:  # fmt: skip
        """Try the fixes of a script's findings, and prove them (needs --allow-run): each runs beside the original, and is
        verified if the finding is gone, none is new, and results and gradients are the same.  Returns a diff of the
        verified ones; apply: also write it; measure: also what it does to kernels and the time of a call.  only: a code (GB0170) or kind.  seconds: begin no other trial then."""
        limit = _seconds(seconds)
        command = ["fix", f"--seconds={limit}", *option("--only", only), *(["--apply"] if apply else [])]
        command += ["--measure"] if measure else []
        command.append(word(script, "script"))
        text = await self._commands.execute(command, args or (), limit + 5 * _GRACE, stores=False)
        return Answer(text, note="The verified fixes were written." if apply else "Nothing was written.")

    async def debug(
        self, run: str = "", program: str = "", breakpoints: list[str] | None = None, steps: list[str] | None = None,
        evaluate: list[str] | None = None,
    ) -> Answer:  # fmt: skip
        """Step through the compilation of a stored run, forwards and backwards; nothing is executed.  breakpoints:
        "model.py:42", or a function, operation, kernel or pass (aten.mm, cpp_fused_*).  steps: of next, stepIn, stepOut,
        stepBack, continue, reverseContinue.  Returns each stop, then stack and variables at the last one.  evaluate:
        expressions there (node.dtype, guards, locals).  program: instead of run, the newest run of this script."""
        if not program:
            run = self._commands.run_id(run)
        text = await Debugging(self._commands.store).session(
            run, program, breakpoints or (), steps or (), evaluate or ()
        )
        return Answer(text, {"run": run})

    async def profile(
        self, script: str = "", args: list[str] | None = None, run: str = "",
        what: Literal["report", "costs", "compile-time"] = "report", target: str = "", calls: int = 20, seconds: int = 600,
    ) -> Answer:  # fmt: skip
        """What lines and kernels cost.  script: measure it (needs --allow-run).  Else a stored run: "report" with what was
        measured, "costs": bytes and operations of each kernel, and the bound on a target (h100); "compile-time": where the
        time of the compiler went."""
        if script:
            command = ["profile", f"--calls={int(calls)}", word(script, "script")]
            return Answer(await self._commands.execute(command, args or (), _seconds(seconds)))
        run = self._commands.run_id(run)
        chosen = {"report": [], "costs": ["--costs", *option("--target", target)], "compile-time": ["--time"]}[what]
        return Answer(_compact(await self._commands.read("show", run, *chosen)), {"run": run})

    async def _report(self, run: str) -> reports.Report:
        report = await self._commands.read_json("show", self._commands.run_id(run))
        assert isinstance(report, dict)
        return report


def _seconds(value: int) -> int:
    return max(1, min(int(value), _SLOWEST))


def _compact(text: str) -> str:
    """Tables without the room between their columns."""
    return "\n".join(re.sub(r"(?<=\S) {3,}", "  ", line.rstrip()) for line in text.split("\n"))


def _cut(text: str, lines: str, ids: dict[str, str]) -> Answer:
    """The lines that are wanted.  Raises ToolFailure."""
    if not lines:
        return Answer(text, ids)
    match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", lines)
    if match is None:
        raise ToolFailure("lines must be a range, as in 40-90.")
    every = text.split("\n")
    first, last = int(match[1]), int(match[2] or match[1])
    return Answer(
        "\n".join(every[max(0, first - 1) : last]), ids, f"lines {first}-{min(last, len(every))} of {len(every)}"
    )
