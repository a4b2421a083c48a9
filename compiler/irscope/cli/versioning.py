"""``irscope diff --python OLD --python NEW SCRIPT``: one script in two environments, and what causes the differences."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Sequence

from irscope.cli.running import refuse_unwritable
from irscope.cli.text import Paint, short_path, to_stdout
from irscope.comparing.versions.differences import KINDS, Difference
from irscope.comparing.versions.environments import PACKAGE, SETTING, EnvironmentChange
from irscope.driver.driver import RunSpec
from irscope.driver.search import Cause
from irscope.driver.versions import Plan, VersionDiff, VersionError, compared_versions
from irscope.protocol import EntryKind, to_json
from irscope.store.store import Store
from irscope.system.streams import complain
from irscope.usercode.notebooks import is_notebook
from irscope.usercode.writing import write_file
from irscope.vocabulary.suggestions import listed
from irscope.vocabulary.units import count, duration
from irscope.vocabulary.visible import printable

_TITLES = {
    "outcome": "Outcome", "finding": "Findings", "compile": "Compiles", "graph": "Graphs", "kernels": "Kernels",
    "code": "Code of kernels", "memory": "Memory", "numbers": "Numbers",
}  # fmt: skip
_MOST_NAMES = 8


def compare_environments(options: argparse.Namespace) -> int:
    """Runs the script in both environments and prints what differs.  Raises LookupError for wrong usage."""
    if len(options.python) != 2 or not options.runs:
        raise LookupError("`irscope diff --python OLD --python NEW SCRIPT` compares one script in two environments.")
    script, *args = options.runs
    if options.output:
        refuse_unwritable(options.output)
    entry = EntryKind.NOTEBOOK if is_notebook(script) else EntryKind.SCRIPT
    before, after = (
        RunSpec(script=script, args=tuple(args), python=python, entry=entry, symbolic_trace=False)
        for python in options.python
    )
    with Store(options.store) as store:
        try:
            found = compared_versions(Plan(before, after, options.seconds), store, on_step=_say)
        except VersionError as error:
            _say("")
            complain(f"irscope: {printable(str(error))}")
            return 3
    _say("")
    try:
        if options.output:
            write_file(options.output, markdown(found).encode("utf-8", "backslashreplace"))
    finally:
        _print(found, options.json)
    return 0


def _print(found: VersionDiff, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"same": found.same, **to_json(found)}, indent=1))
    else:
        to_stdout(version_lines(found, Paint(sys.stdout)))


def version_lines(found: VersionDiff, paint: Paint) -> list[str]:
    """A comparison for people: the two sides, the differences, and their causes."""
    lines = [
        paint(
            f"{_short(found.before.torch, found.before.python)} → {_short(found.after.torch, found.after.python)}",
            "bold",
        )
    ]
    if found.same:
        lines.append("Nothing differs but times.")
    for kind in KINDS:
        of_kind = [one for one in found.differences if one.kind == kind]
        if of_kind:
            lines += ["", paint(_TITLES[kind], "bold")]
            lines += [f"  {printable(_where(one))}{printable(one.what)}" for one in of_kind]
    if found.differences:
        lines += ["", paint("Causes", "bold")]
        for cause in found.causes:
            state = paint("confirmed", "green") if cause.confirmed else paint("not confirmed", "yellow")
            lines.append(f"  {state}  {printable(cause_words(cause))}")
            lines.append(f"    explains {_summary(cause.explains)}: {printable(cause.how)}.")
        if found.unexplained:
            lines.append("  " + paint("not confirmed", "yellow") + f"  {_summary(found.unexplained)}")
            lines += [f"    {printable(text)}" for text in _suspects(found)]
        if found.unstable:
            lines.append(f"  {_summary(found.unstable)} are others in a second run: they change from run to run.")
        if found.is_over:
            lines.append("  The time of the search was over before its end (--seconds).")
    lines += ["", *_figures(found)]
    return lines


def cause_words(cause: Cause) -> str:
    """What is different, of all changes of a cause."""
    words = "; ".join(one.words for one in cause.changes)
    return words if len(cause.changes) == 1 else f"together: {words}"


def _suspects(found: VersionDiff) -> list[str]:
    """What else is different in the environments, and was not or could not be tried."""
    tried = {change for cause in found.causes for change in cause.changes}
    lines = []
    for kind in dict.fromkeys(one.kind for one in found.changes):
        changes = [one for one in found.changes if one.kind == kind and one not in tried]
        if not changes:
            continue
        if kind in (SETTING, PACKAGE) and len(changes) <= _MOST_NAMES:
            lines += [one.words for one in changes]
        else:
            lines.append(f"{count(len(changes), f'other {kind}')} differ: {_names(changes)}")
    return lines or ["The environments have the same settings, packages and code of the compiler."]


def _names(changes: Sequence[EnvironmentChange]) -> str:
    more = len(changes) - _MOST_NAMES
    names = listed(one.name for one in changes[:_MOST_NAMES])
    return f"{names} and {more} more" if more > 0 else names


def _figures(found: VersionDiff) -> list[str]:
    before, after = found.before, found.after
    return [
        f"compiles: {before.compiles} → {after.compiles}; kernels: {before.kernels} → {after.kernels}; "
        f"compile time {duration(before.compile_seconds)} → {duration(after.compile_seconds)}, "
        f"the run {duration(before.seconds)} → {duration(after.seconds)}",
        f"numbers: {printable(found.numbers)}; {count(found.trials, 'more run')} to find causes",
    ]


def _summary(differences: Iterable[Difference]) -> str:
    kinds = [one.kind for one in differences]
    return ", ".join(count(kinds.count(kind), _ONE[kind]) for kind in KINDS if kind in kinds)


_ONE = {
    "outcome": "outcome", "finding": "finding", "compile": "compile", "graph": "graph", "kernels": "list of kernels",
    "code": "kernel code difference", "memory": "memory peak", "numbers": "number",
}  # fmt: skip


def _where(one: Difference) -> str:
    return f"{short_path(one.file)}:{one.line}  " if one.file else ""


def _short(torch: str, python: str) -> str:
    return printable(f"torch {torch} ({short_path(python)})")


def _say(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{f'irscope: {text}…' if text else ''}", end="", file=sys.stderr, flush=True)


# --- the report for an issue tracker ----------------------------------------------------------------------------------


def markdown(found: VersionDiff) -> str:
    """A comparison as Markdown.  Paths are shortened to names, and texts are code, in which no markup is active."""
    before, after = found.before, found.after
    lines = [
        f"# {_code(os.path.basename(found.script))}: torch {_code(before.torch)} and {_code(after.torch)}",
        "",
        "| | before | after |",
        "|---|---|---|",
        f"| torch | {_code(before.torch)} | {_code(after.torch)} |",
        f"| outcome | {before.outcome.kind.value} | {after.outcome.kind.value} |",
        f"| compiles | {before.compiles} | {after.compiles} |",
        f"| kernels | {before.kernels} | {after.kernels} |",
        f"| compile time | {duration(before.compile_seconds)} | {duration(after.compile_seconds)} |",
        f"| run | {duration(before.seconds)} | {duration(after.seconds)} |",
        "",
        f"Numbers: {_code(found.numbers)}.",
        "",
        "## Differences",
        "",
        *(_item(one) for one in found.differences),
    ]
    if found.same:
        lines.append("None but times.")
    if found.differences:
        lines += ["", "## Causes", ""]
        for cause in found.causes:
            lines.append(
                f"- **{'confirmed' if cause.confirmed else 'not confirmed'}** {_code(cause_words(cause))}: "
                f"{cause.how if cause.confirmed else _code(cause.how)}. It explains {_summary(cause.explains)}."
            )
        if found.unexplained:
            lines.append(f"- **not confirmed**: {_summary(found.unexplained)}. Other changes of the environment:")
            lines += [f"  - {_code(text)}" for text in _suspects(found)]
        if found.unstable:
            lines.append(f"- {_summary(found.unstable)} are others in a second run of the newer environment.")
    return "\n".join(lines) + "\n"


def _item(one: Difference) -> str:
    place = f"{_code(f'{os.path.basename(one.file)}:{one.line}')} " if one.file else ""
    return f"- {_ONE[one.kind]}: {place}{_code(one.what)}"


def _code(text: str) -> str:
    """One line as code: a text has no way to end it."""
    flat = " ".join(printable(text).replace("`", "'").replace("|", "\\|").split())
    return f"`{flat}`"
