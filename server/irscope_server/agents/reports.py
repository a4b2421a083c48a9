"""The report of a run in few bytes: findings with IDs, compiles with their kernels."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from irscope.vocabulary.units import ranks_named, spans
from irscope.vocabulary.visible import bounded

Report = dict[str, Any]
Finding = dict[str, Any]

_MESSAGE = 220
"""Characters of a message in a list."""
_MOST_RANKS = 12
_END = "\n"
_IN_FULL = 3
"""This many findings are told in full; more are a list, and each in full by its ID."""


def summary(report: Report) -> str:
    """How the run ended, its findings, its compiles and the names of its kernels."""
    outcome = report["outcome"]
    lines = [
        f"{report['script']}: {outcome['kind']}: {bounded(outcome['message'], 1000)}",
        *([report["standing"]["sentence"]] if "standing" in report else []),
        f"{len(report['findings'])} findings, {len(report['compiles'])} compiles, torch {report['torch']}",
    ]
    lines += listed(report, numbered(report))
    kernels: dict[str, list[str]] = defaultdict(list)
    for kernel in [*report["kernels"], *report["predicted_kernels"]]:
        kernels[kernel["compile"]].append(kernel["name"])
    for each in report["compiles"]:
        names = ", ".join(dict.fromkeys(kernels[each["id"]]))
        place = f"{short(each['file'])}:{each['line']}" if each["file"] else ""
        lines.append(
            f"compile {each['id']} {each['function']} {place} {each['outcome']}, {each['graph_ops']} ops"
            + (f", kernels: {names}" if names else "")
        )
        lines += [f"  compiled again because: {bounded(_guard(reason), _MESSAGE)}" for reason in each["reasons"][:2]]
    for each in report["predictions"]:
        failed = " (it failed, see below)" if each["outcome"] == "error" else ""
        names = ", ".join(dict.fromkeys(kernels[each["id"]])) or "none"
        lines.append(f"predicted {each['id']}: kernels: {names}{failed}")
    lines += ranks(report)
    lines += [f"not captured: {gap['what']}: {bounded(gap['why'], _MESSAGE)}" for gap in report["capture_gaps"]]
    lines += [f"may differ from a full run: {bounded(why, _MESSAGE)}" for why in report.get("may_differ", ())]
    return "\n".join(lines)


def _guard(reason: str) -> str:
    """The guard of a reason for a recompilation, without the line of the source that PyTorch repeats, cut off, after it."""
    return re.split(r"\s+#\s", reason.partition(_END)[0], maxsplit=1)[0]


def ranks(report: Report) -> list[str]:
    """A line for each rank of a job, with its own run."""
    shown = report["ranks"][:_MOST_RANKS]
    lines = []
    for one in shown:
        alike = f", alike: ranks {spans(one['alike'])}" if one["alike"] else ""
        lines.append(
            f"rank {one['rank']}: run {one['run']} {one['outcome']['kind']}, {one['compiles']} compiles, "
            f"{one['kernels']} kernels, {len(one['collectives'])} collectives{alike}"
        )
    rest = len(report["ranks"]) - len(shown)
    return [*lines, *([f"and {rest} more ranks"] if rest else [])]


def numbered(report: Report) -> list[tuple[str, Finding]]:
    """The findings with their IDs, which count from F1 in the order of the run."""
    return [(f"F{number}", finding) for number, finding in enumerate(report["findings"], 1)]


def listed(report: Report, findings: Sequence[tuple[str, Finding]]) -> list[str]:
    """A line for each finding."""
    return [f"{_head(id, finding)}: {bounded(finding['message'], _MESSAGE)}" for id, finding in findings]


def told(report: Report, findings: Sequence[tuple[str, Finding]]) -> str:
    """The findings in full, if they are few; else a line for each."""
    if len(findings) > _IN_FULL:
        return "\n".join([*listed(report, findings), "Each in full: findings(finding=ID)."])
    return "\n\n".join("\n".join(_in_full(id, finding)) for id, finding in findings)


def short(path: str) -> str:
    """A path below the working folder without the folder."""
    here = os.getcwd() + os.sep
    return path.removeprefix(here)


def _head(id: str, finding: Finding) -> str:
    start = finding["range"]["start"]
    times = f" x{finding['count']}" if finding["count"] > 1 else ""
    on = f" on {ranks_named(finding['ranks'])}" if finding["ranks"] else ""
    return f"{id} {short(finding['file'])}:{start['line']}:{start['column'] + 1} {finding['kind']} {finding['code']}{times}{on}"


def _in_full(id: str, finding: Finding) -> list[str]:
    lines = [_head(id, finding), finding["message"], finding["explanation"]]
    lines += [f"-> {hint}" for hint in finding["hints"]]
    lines += [f"fix, not tried (try_fix tries it): {fix['title']}" for fix in finding["fixes"]]
    lines += [
        f"{short(one['file'])}:{one['range']['start']['line']}: {one['message']}" for one in finding["related"][:6]
    ]
    cost = finding["cost"]
    lines.append(
        f"compiles {', '.join(finding['compiles'][:12])}; cost {cost['graphs']} graphs, {cost['seconds']:.3g} s"
    )
    lines.append(finding["link"] or "")
    return [line for line in lines if line]
