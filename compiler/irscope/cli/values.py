"""``irscope values`` and ``irscope diverge``: runs that look at the numbers."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sqlite3
import sys
from typing import Any

from irscope.cli.limits import budget_of_flags
from irscope.cli.progress import ProgressLine
from irscope.cli.running import refuse_unwritable
from irscope.cli.tables import table
from irscope.cli.text import Paint, short_path, to_stdout
from irscope.driver.driver import RunSpec, execute
from irscope.driver.dynamo_comparison import DynamoComparison, compare_dynamo
from irscope.driver.reproducing import written
from irscope.findings.kinds import divergence
from irscope.pipelines.registry import pipeline_named
from irscope.protocol import DEFAULT_PIPELINE, GIVEN, EntryKind, Lane, OutcomeKind, Report, ValuesRequest, to_json
from irscope.store.store import Store
from irscope.store.value_file import DamagedValues
from irscope.values.run.reading import StoredValues, divergences, stored_values
from irscope.values.run.text import DIVERGENCE_HEAD, divergence_row, number, picture_lines, row, summary
from irscope.vocabulary.suggestions import did_you_mean, listed
from irscope.vocabulary.units import count
from irscope.vocabulary.visible import printable

_KEEP_BYTES = 1_000_000_000
ALL_STAGES = "all"
_ELEMENTS = 64


def values(options: argparse.Namespace) -> int:
    """Runs the script and prints the values of the nodes of its graphs.  Raises LookupError for a stage that is not a graph."""
    _refuse_other_stages(options.stage)
    wanted = ValuesRequest(options.compile or "", options.stage or "", options.call, inputs=_inputs(options))
    with Store(options.store) as store:
        report = _run(options, store, wanted)
        if why := _refused(report):
            print(printable(f"irscope: {why}"), file=sys.stderr)
            return 3
        kept = stored_values(store, report.of_target(options.target) if options.target else report)
        if options.node:
            kept = [each for each in kept if options.node in each.names()]
        if options.json:
            print(json.dumps({"run": report.run, "outcome": to_json(report.outcome), "values": [_data(each, options.node) for each in kept]}, indent=1))  # fmt: skip
            return 0
        paint = Paint(sys.stdout)
        for each in kept:
            print(paint(f"{each.stage}", "bold") + paint(f"  call {each.data['call']}, run {report.run}", "dim"))
            to_stdout(_node_lines(each, options.node, paint) if options.node else _table(each, paint))
        _tell_what_is_missing(report, bool(kept), options)
    return 0


def diverge(options: argparse.Namespace) -> int:
    """Runs the script and compares its compiled code with its graphs; 1 where they differ."""
    if options.reproducer:
        refuse_unwritable(options.reproducer)
    wanted = ValuesRequest(
        options.compile or "", "", options.call, statistics=False, divergence=True, inputs=_inputs(options)
    )
    # The compiled programs as a whole, with the graphs of Dynamo run by eager mode: that is not seen in any graph.
    dynamo = compare_dynamo(spec_of(options))
    with Store(options.store) as store:
        report = _run(options, store, wanted)
        if why := _refused(report):
            print(printable(f"irscope: {why}"), file=sys.stderr)
            return 3
        compared = divergences(store, report)
        if dynamo.difference and (finding := divergence.finding_of_dynamo(dynamo.difference, dynamo.file, dynamo.line)):
            store.put_finding(report.run, finding)
        first = next((data for _, data in compared if data["found"] is not None), None)
        made = written(options, first, store, report) if options.reproducer else None
        if options.json:
            answer = {
                "run": report.run, "outcome": to_json(report.outcome), "dynamo": to_json(dynamo),
                "compared": [data for _, data in compared],
            }  # fmt: skip
            print(json.dumps({**answer, "reproducer": made}, indent=1))
            return int(first is not None or bool(dynamo.difference))
        paint = Paint(sys.stdout)
        to_stdout(_dynamo_lines(dynamo, paint))
        for _, data in compared:
            to_stdout(_comparison_lines(data, paint, options.all))
        _tell_what_is_missing(report, bool(compared), options)
        if made is not None:
            to_stdout([printable(line) for line in str(made["message"]).split("\n")])
    return int(first is not None or bool(dynamo.difference))


def _refused(report: Report) -> str:
    """Why there can be no numbers: no torch, or inputs that do not fit; empty if there can be some."""
    if report.outcome.kind is OutcomeKind.ENVIRONMENT_ERROR:
        return report.outcome.message
    return next((gap.why for gap in report.capture_gaps if gap.what == GIVEN), "")


def _inputs(options: argparse.Namespace) -> str:
    """The file of inputs as an absolute path.  Raises LookupError if there is none."""
    if options.inputs and not os.path.isfile(options.inputs):
        raise LookupError(f"File not found: {options.inputs}.")
    return os.path.abspath(options.inputs) if options.inputs else ""


def spec_of(options: argparse.Namespace, wanted: ValuesRequest | None = None) -> RunSpec:
    """The run that the options ask for."""
    entry = EntryKind.MODULE if options.module else EntryKind.SCRIPT
    return RunSpec(
        options.module or options.script, tuple(options.args), Lane.DEEP, options.python, options.cwd,
        budget=budget_of_flags(options), entry=entry, symbolic_trace=False, values=wanted,
        targets=(options.target,) if getattr(options, "target", None) else (), machine_code=False,
    )  # fmt: skip


def _run(options: argparse.Namespace, store: Store, wanted: ValuesRequest) -> Report:
    spec = spec_of(options, wanted)
    progress = ProgressLine()
    stdout = sys.stderr.fileno() if options.json else None
    run, _ = execute(spec, store, on_message=progress.see, stdout=stdout)
    progress.wipe()
    report = store.report(run)
    with contextlib.suppress(sqlite3.Error):
        store.prune(_KEEP_BYTES)
    return report


def _refuse_other_stages(stage: str | None) -> None:
    """Before the script runs in vain, perhaps for minutes."""
    graphs = [kind.name for kind in pipeline_named(DEFAULT_PIPELINE).stages if kind.is_graph]
    if stage and stage not in (*graphs, ALL_STAGES):
        why = did_you_mean(stage, graphs) or f" The graphs are: {listed(graphs)}."
        raise LookupError(f"No graph stage is named {stage}.{why} {ALL_STAGES}: every graph.")


def _tell_what_is_missing(report: Report, any_kept: bool, options: argparse.Namespace) -> None:
    if not any_kept:
        what = f"compile {options.compile}" if options.compile else "anything that Inductor compiled"
        node = f" with a node {options.node}" if getattr(options, "node", None) else ""
        print(f"No values: call {options.call} of {what}{node} was not reached. {report.outcome.message}")
    for gap in report.capture_gaps:
        print(printable(f"not captured: {gap.what}: {gap.why}"), file=sys.stderr)


def _data(kept: StoredValues, node: str | None) -> dict[str, Any]:
    """A stage's data, of one node with its first elements."""
    if node is None:
        return {"id": kept.id, **kept.data}
    value = kept.value(node) or {}
    with contextlib.suppress(DamagedValues, OSError):
        value = {
            **value,
            "elements": [str(v) if isinstance(v, complex) else v for v in kept.elements(value, 0, _ELEMENTS)],
        }
    return {"id": kept.id, **{key: item for key, item in kept.data.items() if key != "nodes"}, "nodes": [{"name": node, "value": value}]}  # fmt: skip


def _table(kept: StoredValues, paint: Paint) -> list[str]:
    head = ["node", "value", "min", "max", "mean", "std", "NaN", "inf"]
    rows = [[printable(cell) for cell in row(node)] for node in kept.data["nodes"]]
    for cells in rows:
        cells[6:] = [paint(cell, "red") for cell in cells[6:]]
    notes = [paint(printable(note), "yellow") for note in kept.data["notes"]]
    return [*table(head, rows, paint, right=frozenset(range(2, 8)), whole=frozenset({0})), *notes, ""]


def _node_lines(kept: StoredValues, node: str, paint: Paint) -> list[str]:
    value = kept.value(node)
    if value is None:
        return []
    lines = [f"{printable(node)}  {printable(summary(value))}"]
    if value["kind"] == "tensor":
        facts = [f"{key} {number(value[key])}" for key in ("min", "max", "mean", "std") if value[key] is not None]
        counts = [f"{name} {value[key]}" for name, key in (("NaN", "nan"), ("+inf", "posinf"), ("-inf", "neginf"), ("zeros", "zeros")) if value[key]]  # fmt: skip
        lines.append("  " + ", ".join([*facts, *counts]))
        lines += ["  " + line for line in picture_lines(value.get("picture"))]
        try:
            elements = kept.elements(value, 0, _ELEMENTS)
            more = ", …" if value["count"] > len(elements) else ""
            lines.append(
                f"  [{', '.join(number(each) if not isinstance(each, complex) else str(each) for each in elements)}{more}]"
            )
        except (DamagedValues, OSError) as error:
            lines.append(paint(f"  {printable(str(error))}", "yellow"))
    return lines


def _dynamo_lines(dynamo: DynamoComparison, paint: Paint) -> list[str]:
    head = paint("Dynamo", "bold")
    checks = "; ".join(dynamo.checks)
    if dynamo.difference:
        place = f"{short_path(dynamo.file)}:{dynamo.line}: " if dynamo.file else ""
        message = divergence.by_dynamo(dynamo.difference)
        return [f"{head}  {paint('divergence', 'red')} ({checks})", f"  {printable(place + message)}"]
    if dynamo.why_not:
        return [
            f"{head}  {paint('not compared', 'yellow')} with the script without compile: {printable(dynamo.why_not)}"
        ]
    return [f"{head}  {paint('no divergence', 'green')} from the script without compile: {checks}"]


def _comparison_lines(data: dict[str, Any], paint: Paint, all_nodes: bool) -> list[str]:
    found, nodes = data["found"], data["nodes"]
    head = paint(data["stage"], "bold") + paint(f"  call {data['call']}", "dim")
    notes = [paint(printable(note), "yellow") for note in data["notes"]]
    if found is None:
        told = [f"{head}  {paint('no divergence', 'green')} at {count(len(nodes), 'node')}"]
    else:
        place = f"{short_path(found['file'])}:{found['line']}: " if found["file"] else ""
        told = [f"{head}  {paint('divergence', 'red')}", f"  {printable(place + found['message'])}"]
        told += [f"    {printable(sentence)}" for sentence in found["tried"]]
    if not all_nodes and found is None:
        return [*told, *notes]
    rows = [[printable(cell) for cell in divergence_row(node)] for node in nodes]
    for cells, node in zip(rows, nodes, strict=True):
        local = node["local"]
        if local and (isinstance(local["ratio"], str) or local["ratio"] > 1):
            cells[3] = paint(cells[3], "red")
    return [*told, *notes, *table(DIVERGENCE_HEAD, rows, paint, right=frozenset(range(3, 9)), whole=frozenset({0})), ""]
