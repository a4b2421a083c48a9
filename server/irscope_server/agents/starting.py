"""The ways in which the tool `run` starts: a script or its ranks, a check, a trace, a list, a page, an environment."""

from __future__ import annotations

import re
from collections.abc import Sequence

from irscope.findings.kinds import compiled_code_error
from irscope.pipelines.registry import pipelines
from irscope.protocol import OutcomeKind
from irscope.vocabulary.visible import bounded

from irscope_server.agents import entries, reports
from irscope_server.agents.answers import Answer, ToolFailure
from irscope_server.agents.commands import Commands, option, word, words

GRACE = 60.0
"""Seconds that a command gets beyond those of its script."""
_SLOWEST = 3600
_BOUND = re.compile(r"max-[a-z-]{1,30}=[0-9.]{1,20}")
_PRINTED_LINES, _PRINTED = 12, 800
"""The most lines, and characters, from the end of what a script printed."""
_VERDICTS = {
    0: "Clean: nothing fails the check.",
    1: "Not clean: a finding fails the check, or a number is over its bound.",
    4: "The script failed, so it was not checked to its end.",
}
"""What exit codes of ``irscope check`` that are answers say."""
_DIFFERS = 1
"""Exit code of ``irscope verify-target`` that is an answer, too; it has it also where nothing could be compared."""
_PICTURES = re.compile(r".+\.(svg|pdf|png|dot|gv)", re.IGNORECASE | re.DOTALL)


def seconds_of(value: int) -> int:
    """A limit that a client may choose."""
    return max(1, min(int(value), _SLOWEST))


def run_in(text: str) -> dict[str, str]:
    """The run that a command names at the end of what it says, for the head of the answer."""
    found = re.findall(r"irscope show (\d{8}-\d{6}-[0-9a-f]{6})", text[-_PRINTED:])
    return {"run": found[-1]} if found else {}


def joined(option_name: str, names: Sequence[str] | None) -> list[str]:
    """``--name=a,b``; empty if there are none.  Raises ToolFailure."""
    return option(option_name, ",".join(word(name, option_name.lstrip("-")) for name in names or ()))


def one_of(**given: object) -> None:
    """Raises ToolFailure if more than one of the arguments is given."""
    if len(found := [name for name, value in given.items() if value]) > 1:
        raise ToolFailure(f"Give one of {', '.join(found)}, and not several: each is a separate question.")


async def script(
    commands: Commands, chosen: Sequence[str], target: Sequence[str], args: Sequence[str], seconds: int
) -> Answer:
    """Runs a script or test, and tells its report and the end of what it printed.

    Args:
        chosen: Options of ``irscope run``.
        target: What is run, as `entries.entry` has it.
    """
    limit = seconds_of(seconds)
    command = ["run", "--json", *chosen, f"--budget={limit}", *target]
    report, printed = await commands.execute_json(command, args, limit + GRACE)
    return Answer(f"{reports.summary(report)}{_end_of(printed)}", {"run": report["run"]}, _next(report))


def _next(report: reports.Report) -> str:
    """What to ask next, where the list of findings does not say it."""
    if report["outcome"]["kind"] == OutcomeKind.BUDGET.value:
        return 'It was stopped by a limit: seconds=... gives it more time, options=["memory-budget=..."] more memory.'
    if report["predictions"] and all(one["outcome"] == "error" for one in report["predictions"]):
        return 'No kernels were predicted: what is "not captured", at the end, says why and what to do.'
    if report["predictions"]:
        return "line(place=..., target=...), stage(compile=ID/TARGET), diff(targets=[...]): what was predicted."
    if report["ranks"]:
        return "findings(ranks=True): where the ranks differ, what they communicate, who waited."
    if any(finding["kind"] == compiled_code_error.KIND.id for finding in report["findings"]):
        return "findings(finding=ID) tells the error in full, and whether it fails without compile, if that was asked."
    return ""


def _end_of(printed: str) -> str:
    lines = printed.rstrip().split("\n")[-_PRINTED_LINES:]
    text = "\n".join(lines)[-_PRINTED:]
    return f"\nprinted last:\n{text}" if text else ""


async def check(
    commands: Commands, checks: Sequence[str], chosen: Sequence[str], script: str, args: Sequence[str], seconds: int
) -> Answer:
    """Whether a script has what it must not have.

    Args:
        checks: Kinds, codes or severities of findings, and bounds as ``max-graphs=1``; empty: what ``irscope check``
            fails on.
    """
    limit = seconds_of(seconds)
    bounds = [f"--{one}" for one in checks if _BOUND.fullmatch(one)]
    names = joined("--fail-on", [one for one in checks if not _BOUND.fullmatch(one)])
    command = ["check", *chosen, *names, *bounds, f"--budget={limit}", word(script, "script")]
    text, code = await commands.execute_coded(command, args, limit + GRACE, tuple(_VERDICTS))
    return Answer(text, run_in(text), _VERDICTS[code])


async def verified(
    commands: Commands, target: str, chosen: Sequence[str], script: str, args: Sequence[str], seconds: int
) -> Answer:
    """Whether the kernels on the GPU of this machine are those that were predicted for it."""
    if not target:
        raise ToolFailure(
            'verify needs the name of this machine\'s GPU, as in target="h100". run(what="devices") lists them.'
        )
    command = ["verify-target", *chosen, word(target, "target"), word(script, "script")]
    text = await commands.execute(command, args, seconds_of(seconds), codes=(0, _DIFFERS))
    return Answer(text, note="source: the text of a kernel; code: its machine code, as PTX.")


async def trace(commands: Commands, path: str, compile: str, overview: bool, seconds: int) -> Answer:
    """Opens a structured trace as a run, or lists the longest compiles of a big one."""
    file, limit = commands.trace_file(path), seconds_of(seconds)
    if overview:
        text = await commands.read("open", "--overview", file, seconds=limit)
        return Answer(
            text, note="run(trace=..., compile=ID) opens one. The same call again reads what was written since."
        )
    report = await commands.read_json("open", *option("--compile", compile), file, seconds=limit)
    if "findings" not in report:
        raise ToolFailure("This is a trace of torch.profiler. profile(trace=...) tells whose time it is.")
    return Answer(
        reports.summary(report), {"run": report["run"]}, f"Opened; none of it was executed. {_next(report)}".rstrip()
    )


async def list_pipelines(commands: Commands, seconds: int) -> Answer:
    """The pipelines; which of them work here only where code may be run, since that is tried."""
    if not commands.allow_run:
        names = [f"{one.name}: {one.title}" for one in pipelines().values()]
        return Answer("\n".join(names), note="Whether they work here is not tried without --allow-run.")
    text = await commands.execute(["pipelines"], None, seconds_of(seconds) + GRACE, stores=False)
    lines = [line for line in text.split("\n") if line and not line.startswith("  stages: ")]
    return Answer("\n".join(bounded(line, 300) for line in lines), note="Each was tried: it compiled something small.")


async def list_devices(commands: Commands, target: str) -> Answer:
    """The devices that kernels are predicted for; of one the source of each figure."""
    return Answer(await commands.read("targets", *words(target, "target"), stores=False))


async def page(
    commands: Commands, path: str, run: str, compile: str, stage: str, options: Sequence[str] | None
) -> Answer:
    """Writes a run as one page of HTML, or one of its graphs as a picture."""
    commands.need_permission()  # it writes a file
    run = commands.run_id(run)
    if not stage:
        chosen = [*entries.more("report", options), *option("--output", path)]
        text = await commands.read("report", run, *chosen, seconds=GRACE * 5)
        return Answer(text, {"run": run}, "The page was written.")
    if not _PICTURES.fullmatch(path):
        raise ToolFailure(
            'A picture of a stage is a file that ends in .svg, .pdf, .png or .dot, as in report="graph.svg".'
        )
    chosen = [*entries.more("graph", options), *option("--compile", compile), *option("--stage", stage)]
    text = await commands.read("graph", run, *chosen, *option("--output", path), seconds=GRACE * 5)
    return Answer(text, {"run": run, "stage": stage}, "The picture was written.")


async def environment(commands: Commands, pipeline: str, seconds: int) -> Answer:
    """Makes an environment with what a pipeline needs; installs packages."""
    command = ["env", "--yes", "create", word(pipeline, "environment")]
    return Answer(await commands.execute(command, None, seconds_of(seconds), stores=False))
