"""``irscope open`` of a compiled artifact: what is in it, and what differs here."""

from __future__ import annotations

import argparse
import json
import sys

from irscope.cli.text import Paint, short_path, to_stdout
from irscope.driver.saved_guards import judge
from irscope.ir.artifacts.contents import Artifact, ArtifactError
from irscope.ir.artifacts.kinds import Kind, open_artifact
from irscope.opening.artifact_run import open_as_run
from irscope.opening.fitting import Fit, fit, not_portable
from irscope.protocol import to_json
from irscope.provenance.trails import keep_trails
from irscope.store.store import Store
from irscope.system.streams import complain
from irscope.system.trust import TrustError
from irscope.vocabulary.units import count, size
from irscope.vocabulary.visible import printable

_SHOWN = 12


def print_artifact(options: argparse.Namespace, kind: Kind) -> int:
    """Prints what is in an artifact and what differs here.  Raises LookupError if ``--run`` is not a run."""
    try:
        artifact = open_artifact(options.trace, kind)
    except ArtifactError as error:
        complain(f"irscope: {printable(str(error))}")
        return 3
    try:
        found, run = _compared(artifact, options)
    except TrustError as error:
        complain(f"irscope: {printable(str(error))}")
        return 3
    lines = artifact_lines(artifact, found, Paint(sys.stdout), options.all and not options.json)
    if run:
        lines.append(f"Its stages are the run {run}: irscope show")
    if options.json:
        facts = {**to_json(artifact), "fit": to_json(found), "not_portable": to_json(not_portable(artifact))}
        print(json.dumps({**facts, "run": run, "text": "\n".join(lines)}, indent=1))
    else:
        to_stdout(lines)
    return 0


def _compared(artifact: Artifact, options: argparse.Namespace) -> tuple[Fit, str]:
    """What differs here, and the ID of the run with its stages.  Raises TrustError and LookupError."""
    with Store(options.store) as store:
        found = fit(artifact, store, store.find_run(options.run)) if options.run else fit(artifact)
        if run := open_as_run(artifact, store):
            keep_trails(store, run)
            store.tidy(run)
    return judge(artifact, options.trust, options.script, found) if options.trust else found, run


def artifact_lines(artifact: Artifact, found: Fit, paint: Paint, is_all: bool = False) -> list[str]:
    """An artifact for people: what differs comes first."""
    lines = [
        paint(printable(f"{short_path(artifact.path)}: {artifact.kind}, {size(artifact.size)}"), "bold"),
        printable(f"  sha256 {artifact.digest}"),
    ]
    lines += [f"  {printable(name)} {printable(value)}" for name, value in artifact.made_for.items()]
    lines += _fit_lines(found, paint, is_all)
    lines.append(f"If it does not match: {artifact.on_miss}")
    for name, file, line in artifact.functions:
        lines.append(printable(f"function  {name}  {short_path(file)}:{line}"))
    for title, rows in (
        ("not portable", [f"{short_path(one.file)}:{one.line}  {one.what}" for one in not_portable(artifact)]),
        ("input", [f"{name}  {' '.join(facts.values())}" for name, facts in artifact.inputs.items()]),
        ("guard", [_guard(guard.kind, guard.source, guard.file, guard.line) for guard in artifact.guards]),
        ("constraint", artifact.constraints),
        ("graph", [f"{name}  {count(text.count(chr(10)) + 1, 'line')}" for name, text in artifact.graphs.items()]),
        ("kernel", list(artifact.kernels)),
        ("part", [f"{part.name}  {size(part.size)}" for part in artifact.parts]),
        ("problem", artifact.problems),
    ):
        lines += [printable(f"{title}  {row}") for row in _cut(rows, is_all)]
    return lines


def _fit_lines(found: Fit, paint: Paint, is_all: bool) -> list[str]:
    """What differs here, and what was compared."""
    lines = []
    for difference in found.differences:
        place = f"{short_path(difference.file)}:{difference.line}  " if difference.line else ""
        lines.append(paint("differs  ", "red") + printable(place + difference.what))
    if not found.differences:
        lines.append("Nothing that was compared differs." if found.compared else "Nothing could be compared.")
    lines += [printable(f"  compared: {text}") for text in _cut(list(found.compared), is_all)]
    return lines + [printable(f"  not compared: {text}") for text in _cut(list(found.not_compared), is_all)]


def _guard(kind: str, source: str, file: str, line: int) -> str:
    return f"{kind} {source}" + (f"  {short_path(file)}:{line}" if line else "")


def _cut(rows: list[str], is_all: bool) -> list[str]:
    if is_all or len(rows) <= _SHOWN:
        return rows
    return [*rows[:_SHOWN], f"… and {len(rows) - _SHOWN} more (--all)"]
