"""The tools: each starts a command of irscope and says what it is about.  Their docstrings are what an agent reads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from irscope_server.agents import entries, reports, scripts, starting
from irscope_server.agents.answers import Answer, ToolFailure
from irscope_server.agents.commands import Commands, option, word, words
from irscope_server.agents.debugging import Debugging
from irscope_server.agents.trails import trail

_MOST_NODES = 60
"""Boxes of a graph before it is folded by module: about as many lines as an answer has."""


class Tools:
    """At most ten, each a coroutine that returns an `Answer` or raises ToolFailure."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands

    async def run(
        self, script: str = "", args: list[str] | None = None, module: str = "", pytest: str = "", model: str = "",
        inputs: str = "", trace: str = "", what: Literal["runs", "pipelines", "devices"] = "runs",
        lane: Literal["deep", "fast"] = "deep", pipeline: str = "", target: str = "", verify: bool = False, world: int = 0,
        nproc: int = 0, ranks: str = "", check_without_compile: bool = False, checks: list[str] | None = None,
        compile: str = "", overview: bool = False, report: str = "", run: str = "", stage: str = "", environment: str = "",
        options: list[str] | None = None, seconds: int = 300,
    ) -> Answer:  # fmt: skip
        """Start here: puts a run into the store and lists its findings, compiles, kernels and ranks.  One of:
        script, run under capture (needs --allow-run); or module="pkg.train", pytest="tests/test_a.py::test_b", or
        model="net.py:Net()" with inputs="net.py:x".  lane "fast": graph breaks and
        recompilations only, in seconds; "deep": every stage down to the kernels.  pipeline: another compiler than inductor.
        target: also predict the kernels for a device (h100); verify: run on it here, and compare.  world, ranks: ranks
        "0,37" of a job of that size, simulated; nproc: real ranks.  check_without_compile: if it fails, does it without
        compile, too?  checks: instead say whether it is clean, ["graph-break", "max-graphs=1"].  options: others of the
        command line, ["fake", "tuned=runs.db", "baseline=known.json", "nnodes=2"].
        trace: what TORCH_TRACE wrote elsewhere (folder, log, archive; of all ranks), opened without running anything; of a
        big or growing log, overview lists the longest compiles, and compile="0/0" opens one.
        what: lists the stored runs, the pipelines and which work here, or the known devices.
        report="page.html": write run=ID as a page; with stage, "graph.svg": that graph as a picture.  environment:
        install what a pipeline needs.  seconds: the limit; it is stopped then."""
        starting.one_of(
            script=script,
            module=module,
            pytest=pytest,
            model=model,
            trace=trace,
            report=report,
            environment=environment,
        )
        is_run, given = any((script, module, pytest, model)), args or ()
        if options and not (is_run or report):
            raise ToolFailure("options are of a script that is run, or of a report.")
        if trace:
            return await starting.trace(self._commands, trace, compile, overview, seconds)
        if report:
            return await starting.page(self._commands, report, run, compile, stage, options)
        if environment:
            return await starting.environment(self._commands, environment, seconds)
        if not is_run:
            return await self._list(what, target, seconds)
        if (checks is not None or verify) and not script:
            raise ToolFailure("checks and verify need a script.")
        if verify:
            chosen = entries.more("verify-target", options)
            return await starting.verified(self._commands, target, chosen, script, given, seconds)
        chosen = option("--pipeline", pipeline)
        if checks is not None:
            chosen = [*_flag("--lane=fast", lane == "fast"), *chosen, *entries.more("check", options)]
            return await starting.check(self._commands, checks, chosen, script, given, seconds)
        chosen = [f"--lane={lane}", *chosen, *option("--target", target)]
        chosen += [*_number("--world", world), *_number("--nproc-per-node", nproc), *option("--ranks", ranks)]
        chosen += [*_flag("--check-without-compile", check_without_compile), *entries.more("run", options)]
        what_runs = entries.entry(script, module, pytest, model, inputs)
        return await starting.script(self._commands, chosen, what_runs, given, seconds)

    async def _list(self, what: str, target: str, seconds: int) -> Answer:
        if what == "pipelines":
            return await starting.list_pipelines(self._commands, seconds)
        if what == "devices":
            return await starting.list_devices(self._commands, target)
        return Answer(await self._commands.read("list"), note="Stored runs, newest first. findings(run=ID) tells more.")

    async def findings(
        self, run: str = "", finding: str = "", file: str = "", kind: str = "", guards: bool = False, compile: str = "",
        ranks: bool = False,
    ) -> Answer:  # fmt: skip
        """Graph breaks, recompilations and other findings of a stored run: where, why, what to do.  run: its ID or prefix
        (default: the newest).  finding: one of them in full, by ID (F1) or code (GB0170).  file, kind
        ("recompilation"): only these.  guards: instead list the guards of each compile (of one: compile="0/0"), with
        those that failed first.  ranks: of a job instead: what differs between ranks and why, what each compiled and
        communicates, who waited for whom, and the run of each rank for diff."""
        starting.one_of(guards=guards, ranks=ranks, finding=finding)
        if ranks:
            run = self._commands.run_id(run)
            return Answer(_compact(await self._commands.read("show", run, "--ranks")), {"run": run})
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
        found = await trail(self._commands, place, run, target)
        if found.is_empty:
            raise ToolFailure(
                f"Nothing in run {found.run} came from {place}. Lines of findings and compiles: findings(run=...)."
            )
        return Answer("\n".join([f"{found.place}  {found.text}", *found.kernels, *found.steps]), {"run": found.run})

    async def why_not_fused(self, first: str, second: str, run: str = "", compile: str = "") -> Answer:
        """Why Inductor did or did not fuse two kernels.  first, second: kernels (cpp_fused_add_0, extern_kernels.mm), nodes
        of the schedule (op3) or of the post-grad graph (mul_1); compile: "0/0", if they are in several."""
        asked = [word(first, "first"), word(second, "second")]
        run = self._commands.run_id(run)
        text = await self._commands.read("explain", run, *option("--compile", compile), "--fusion", *asked)
        return Answer(text, {"run": run, "compile": compile})

    async def stage(
        self, stage: str = "", run: str = "", compile: str = "", kernel: str = "", lines: str = "",
        graph: bool = False, node: str = "", around: int = 2,
    ) -> Answer:  # fmt: skip
        """The text of a stage, or of a kernel's source.  stage: ID (0/0/post-grad-graph) or name (output-code, guards,
        dynamo-graph, fusion, memory-plan with its peak, autotuning); kernel: its name.  lines: only these, as in "40-90".
        With neither stage nor kernel: the stages of a compile ("0/0"), or all compiles and kernels of the run.  graph:
        instead the nodes of a graph with what each takes ("a = add f32[4] <- b, c"), folded by module if it is large;
        node: only what is within `around` edges of this one."""
        if (graph or node) and not stage:
            raise ToolFailure('graph and node need a stage that is a graph, as in stage="0/0/post-grad-graph".')
        if not stage and not kernel and not compile:
            report = await self._report(run)
            return Answer(reports.summary(report), {"run": report["run"]}, "stage(compile=ID) lists the stages of one.")
        run = self._commands.run_id(run)
        ids = {"run": run, "compile": compile, "stage": stage, "kernel": kernel}
        if graph or node:
            near = [*option("--node", node), f"--around={max(0, min(int(around), 100))}"] if node else []
            chosen = ["--text", f"--max-nodes={_MOST_NODES}", *option("--compile", compile), *option("--stage", stage)]
            return _cut(await self._commands.read("graph", run, *chosen, *near), lines, ids)
        if stage:
            self._commands.need_stored(run, stage)
        chosen = [*option("--compile", compile), *option("--stage", stage), *option("--kernel", kernel)]
        text = await self._commands.read("show", run, *chosen, f"--python={self._commands.python}")
        return _cut(text, lines, ids)

    async def diff(
        self, before: str = "", after: str = "", stages: list[str] | None = None, targets: list[str] | None = None,
        cache: bool = False, script: str = "", module: str = "", args: list[str] | None = None,
        pipelines: list[str] | None = None, interpreters: list[str] | None = None, options: list[str] | None = None,
        seconds: int = 900,
    ) -> Answer:  # fmt: skip
        """What changed between two runs, also those of two ranks: findings, compiles, kernels (default: the newest against
        the one before).  stages: instead compare one stage between the runs, or two stages of one run, by name or ID;
        graphs by structure.  targets: what two devices get, of one run.  cache: which part of PyTorch's cache keys made
        `after` miss what `before` had stored.  Or run a script (needs --allow-run), with args: through several pipelines
        (["inductor", "onnx"]: operators, kernels, time, error, and what each left behind), or with two interpreters
        (paths of python: what another version of torch changed, and the cause)."""
        starting.one_of(stages=stages, targets=targets, cache=cache, pipelines=pipelines, interpreters=interpreters)
        if any((pipelines, interpreters, script, module, options)):
            return await self._two_ways(script, module, args or (), pipelines, interpreters or (), options, seconds)
        before, after = (name and self._commands.run_id(name) for name in (before, after))
        if cache:
            if not before:
                raise ToolFailure("cache needs the run that filled the caches: before=ID. run() lists the runs.")
            after = after or self._commands.run_id("")
            return Answer(await self._commands.read("why-miss", before, after), {"before": before, "after": after})
        asked = [word(stage, "stage") for stage in stages or ()]
        chosen = ["--stage", *asked[:2]] if asked else starting.joined("--target", targets)
        text = await self._commands.read("diff", *words(before, "before"), *words(after, "after"), *chosen)
        return Answer(text, {"before": before, "after": after})

    async def _two_ways(
        self, script: str, module: str, args: Sequence[str], pipelines: Sequence[str] | None, interpreters: Sequence[str],
        options: Sequence[str] | None, seconds: int,
    ) -> Answer:  # fmt: skip
        """One script through several pipelines, or with two interpreters."""
        self._commands.need_permission()
        if len(pipelines or interpreters) < 2 or len(interpreters) > 2:
            raise ToolFailure("This needs a script, and pipelines (two or more) or interpreters (two paths of python).")
        if pipelines:
            return await self._through(script, module, args, pipelines, options, seconds)
        return await self._with_both(script, args, interpreters, options, seconds)

    async def _through(
        self, script: str, module: str, args: Sequence[str], pipelines: Sequence[str], options: Sequence[str] | None,
        seconds: int,
    ) -> Answer:  # fmt: skip
        """One script through several pipelines."""
        given = entries.more("compare", options)
        what_runs = entries.entry(script, module) if script or module or not options else []
        command = ["compare", *starting.joined("--pipelines", pipelines), *given, *what_runs]
        # exit code 1: none of them could run it, and the answer says why
        text = await self._commands.execute(command, args, starting.seconds_of(seconds), codes=(0, 1))
        return Answer(_compact(text))

    async def _with_both(
        self, script: str, args: Sequence[str], interpreters: Sequence[str], options: Sequence[str] | None, seconds: int
    ) -> Answer:
        """One script with two interpreters."""
        if not script:
            raise ToolFailure("interpreters needs a script.")
        limit = starting.seconds_of(seconds)
        chosen = [*(f"--python={word(one, 'interpreter')}" for one in interpreters), *entries.more("diff", options)]
        command = ["diff", *chosen, f"--seconds={limit // 2}", word(script, "script")]
        return Answer(await self._commands.execute(command, args, limit, python=False))

    async def values(
        self, script: str = "", args: list[str] | None = None, module: str = "",
        what: Literal["divergence", "values"] = "divergence", compile: str = "", stage: str = "", node: str = "",
        call: int = 1, inputs: str = "", reproducer: str = "", options: list[str] | None = None, seconds: int = 300,
    ) -> Answer:  # fmt: skip
        """Run a script and look at its numbers (needs --allow-run).  "divergence": the first node where compiled code
        differs from its graph, and the pass, lowering or kernel that made it so.  "values": what each node of a graph
        (stage="post-grad-graph") computes; node: one of them, with elements.  call: which call of the graph;
        inputs: a .py file that defines `inputs`, in place of the call's own.  reproducer: with "divergence", write the
        smallest script that shows it to this path, and run it."""
        limit = starting.seconds_of(seconds)
        chosen = [
            *option("--compile", compile),
            f"--call={int(call)}",
            f"--budget={limit}",
            *option("--inputs", inputs),
            *entries.more("values" if what == "values" else "diverge", options),
        ]
        if what == "values":
            command = ["values", *chosen, *option("--stage", stage), *option("--node", node)]
        else:
            command = ["diverge", *chosen, *option("--reproducer", reproducer)]
        command += entries.entry(script, module)
        text = await self._commands.execute(command, args or (), limit + starting.GRACE, codes=(0, 1))
        return Answer(_compact(text), {"compile": compile, "stage": stage})

    async def try_fix(
        self, script: str, args: list[str] | None = None, only: str = "", apply: bool = False,
        measure: bool = False, patches: str = "", tune: bool = False, options: list[str] | None = None, seconds: int = 120,
    ) -> Answer:  # fmt: skip
        """Try the fixes of a script's findings, and prove them (needs --allow-run): each runs beside the original, and is
        verified if the finding is gone, none is new, and results and gradients are the same.  Returns a diff of the
        verified ones; apply: also write it; measure: also what it does to kernels and the time of a call.  only: a code
        (GB0170) or kind.  patches: write a patch with a text for the pull request into this folder for each break in an
        installed library.  tune: instead measure what makes its steps faster (fixes, arguments of torch.compile, settings),
        and return the proven patch; needs hundreds of steps and seconds=900.  seconds: begin no other trial then."""
        limit = starting.seconds_of(seconds)
        if tune:
            command = ["tune", f"--budget={limit}", *entries.more("tune", options), word(script, "script")]
            text = await self._commands.execute(command, args or (), limit + 5 * starting.GRACE, stores=False)
            return Answer(text, note="Nothing was written.  With more seconds more is tried.")
        command = ["fix", f"--seconds={limit}", *option("--only", only), *_flag("--apply", apply)]
        command += [*_flag("--measure", measure), *option("--patches", patches)]
        command += [*entries.more("fix", options), word(script, "script")]
        text = await self._commands.execute(command, args or (), limit + 5 * starting.GRACE, stores=False)
        wrote = apply or bool(patches)
        note = (
            "The last line names what was written."
            if wrote
            else "Nothing was written; apply=True writes the diff, and it alone."
        )
        return Answer(text, note=f"{note} With more seconds more is tried.")

    async def debug(
        self, run: str = "", program: str = "", breakpoints: list[str] | None = None, steps: list[str] | None = None,
        evaluate: list[str] | None = None, script: bool = False, args: list[str] | None = None,
        without_compile: bool = False, seconds: int = 120,
    ) -> Answer:  # fmt: skip
        """Step through the compilation of a stored run, forwards and backwards; nothing is executed.  breakpoints:
        "model.py:42", a function, operation, kernel or pass (aten.mm, cpp_fused_*), also "model.py:42 if CONDITION", or a
        kind of finding (graph-break).
        steps: of next, stepIn, stepOut, stepBack, continue, reverseContinue.  Returns each stop, then stack and variables
        at the last one.  evaluate: expressions there (node.dtype, guards, locals).  program: instead of run, the newest
        run of this script.  script: instead step through program itself as it runs with args (needs --allow-run and
        debugpy; forwards only), with what the line at the stop was compiled to; without_compile: so that lines of
        compiled functions are reached."""
        asked = (breakpoints or (), steps or (), evaluate or ())
        if script:
            if not program:
                raise ToolFailure('script needs the program, as in debug(program="train.py", script=True).')
            limit = starting.seconds_of(seconds)
            wanted = scripts.Wanted(program, args or (), *asked, without_compile, limit)
            found = await scripts.session(self._commands, wanted)
            ran = "to its end" if found.ended else "up to the last stop, and was ended there"
            return Answer(found.text, {"run": found.run}, f"The script ran {ran}.")
        if not program:
            run = self._commands.run_id(run)
        return Answer(await Debugging(self._commands.store).session(run, program, *asked), {"run": run})

    async def profile(
        self, script: str = "", args: list[str] | None = None, module: str = "", run: str = "", trace: str = "",
        what: Literal["report", "costs", "compile-time", "autotuning"] = "report", target: str = "", calls: int = 20,
        against: list[str] | None = None, without_breaks: bool = False, memory: bool = False,
        options: list[str] | None = None, seconds: int = 600,
    ) -> Answer:  # fmt: skip
        """What lines and kernels cost.  script: measure it (needs --allow-run); against: also time each graph through these
        pipelines (["onnx"]); without_breaks: also measure it with each graph break and recompilation removed; memory: also
        who holds the memory of a step at its peak.  trace:
        instead a trace that torch.profiler exported, joined to the lines of run=ID.  Else a stored run: "report" with what
        was measured, "costs": bytes and operations of each kernel, and the bound on a target (h100); "compile-time": where
        the time of the compiler went; "autotuning": what max-autotune tried."""
        starting.one_of(script=script, module=module, trace=trace)
        if script or module or options:
            chosen = [f"--calls={int(calls)}", *starting.joined("--against", against)]
            chosen += [*_flag("--without-breaks", without_breaks), *_flag("--memory", memory)]
            command = ["profile", *chosen, *entries.more("profile", options)]
            command += entries.entry(script, module) if script or module else []
            text = await self._commands.execute(command, args or (), starting.seconds_of(seconds))
            return Answer(_compact(text), starting.run_in(text))
        if trace:
            file, joined = self._commands.trace_file(trace), run and self._commands.run_id(run)
            limit = starting.seconds_of(seconds)
            # The store alone would join the trace to the newest run, of which it need not be.
            text = await self._commands.read("open", file, *option("--run", joined), seconds=limit, stores=bool(joined))
            return Answer(_compact(text), {"run": joined})
        run = self._commands.run_id(run)
        chosen = {
            "report": [], "costs": ["--costs", *option("--target", target)], "compile-time": ["--time"],
            "autotuning": ["--autotuning"],
        }[what]  # fmt: skip
        return Answer(_compact(await self._commands.read("show", run, *chosen)), {"run": run})

    async def _report(self, run: str) -> reports.Report:
        report = await self._commands.read_json("show", self._commands.run_id(run))
        assert isinstance(report, dict)
        return report


def _number(name: str, value: int) -> list[str]:
    return [f"{name}={int(value)}"] if value else []


def _flag(name: str, wanted: bool) -> list[str]:
    return [name] if wanted else []


def _compact(text: str) -> str:
    """Tables without the room between their columns, nor the options of the command line that would give more."""
    lines = (re.sub(r"(?<=\S) {3,}", "  ", line.rstrip()) for line in text.split("\n"))
    return "\n".join(re.sub(r"^(\s*(?:… )?and .*\bmore\b.*) \(--[a-z -]{1,60}\)$", r"\1", line) for line in lines)


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
