"""``irscope explain``: why Inductor did what it did."""

from __future__ import annotations

import argparse
import json
import sys

from irscope.cli.text import Paint, short_path, to_stdout
from irscope.ir.fusion_reasons import told
from irscope.protocol import to_json
from irscope.provenance.fusions import Decision, FusionAnswer, Side, explain_fusion
from irscope.store.store import Store
from irscope.vocabulary.visible import printable


def explain(options: argparse.Namespace) -> int:
    """Prints the answer.  Raises LookupError if a name is not in the run."""
    with Store(options.store) as store:
        report = store.report(store.find_run(options.run))
        reports = [report.of_target(options.target)] if options.target else report.by_device
        first, second = options.fusion
        answers = explain_fusion(store, reports, first, second, options.compile)
    if options.json:
        print(json.dumps(to_json(answers), indent=1))
    else:
        to_stdout([line for answer in answers for line in _lines(answer, Paint(sys.stdout))])
    return 0


def _lines(answer: FusionAnswer, paint: Paint) -> list[str]:
    lines = [f"{paint(printable(answer.stage), 'cyan')}  {paint(printable(answer.summary), 'bold')}"]
    for decision in answer.decisions:
        lines += _decision(decision, paint)
    return lines


def _decision(decision: Decision, paint: Paint) -> list[str]:
    word = paint("fused", "green") if decision.fused else paint("kept apart", "yellow")
    what = told(decision.reason) if not decision.fused else f"score {decision.reason}" if decision.reason else ""
    if decision.buffers:
        what += f"; both touch {', '.join(decision.buffers)}"
    return [
        f"  {word}, {decision.kind}: {printable(what)}",
        f"    {_side(decision.first, paint)}",
        f"    {_side(decision.second, paint)}",
    ]


def _side(side: Side, paint: Paint) -> str:
    places = ", ".join(f"{short_path(origin.file)}:{origin.line}" for origin in side.origins[:4])
    more = f" and {len(side.origins) - 4} more lines" if len(side.origins) > 4 else ""
    names = printable(f"{'+'.join(side.nodes)} [{', '.join(side.operations)}]")
    return names + (paint(f"  from {places}{more}", "dim") if places else "")
