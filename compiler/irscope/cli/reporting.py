"""``irscope report``: a run as one page of HTML."""

from __future__ import annotations

import argparse
import os

from irscope.cli.report import use_cells
from irscope.cli.running import refuse_unwritable
from irscope.cli.text import print_json, short_path
from irscope.findings.control import controlled
from irscope.reporting.page import page_of
from irscope.reporting.redaction import Redaction
from irscope.store.store import Store
from irscope.usercode.writing import write_file
from irscope.vocabulary.units import size
from irscope.vocabulary.visible import printable


def report(options: argparse.Namespace) -> int:
    """Writes the page.  Raises LookupError for an unknown run and a file that cannot be written."""
    refuse_unwritable(options.output)
    with Store(options.store) as store:
        run = store.find_run(options.run)
        use_cells(store, run)
        found = controlled(store.report(run), store.lane_of(run))
        found = found.of_target(options.target) if options.target else found
        files = {
            found.script,
            *(one.file for one in found.findings),
            *(one.file for one in found.compiles),
            *store.sources(run),
        }
        page = page_of(store, found, Redaction(options.redact, files), options.pictures)
    data = page.encode("utf-8", "backslashreplace")
    write_file(options.output, data)
    if options.json:
        print_json({"run": run, "file": os.path.abspath(options.output), "bytes": len(data)})
    else:
        print(printable(f"{short_path(options.output)}: run {run}, {size(len(data))}"))
    return 0
