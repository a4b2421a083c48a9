"""``irscope open``: by what a file has in it, a run from a structured trace, the time in a profiler's, or an artifact."""

from __future__ import annotations

import argparse
import os

from irscope.cli.finishing import print_report
from irscope.cli.profiling import open_profile
from irscope.cli.progress import ProgressLine
from irscope.cli.report import use_cells
from irscope.driver.opened_ranks import open_traces
from irscope.findings.control import controlled
from irscope.ir.artifacts.contents import ArtifactError
from irscope.ir.artifacts.kinds import kind_of
from irscope.opening.logs import is_trace
from irscope.opening.paths import Roots
from irscope.opening.trace_run import TraceSpec
from irscope.opening.warnings import TraceError
from irscope.protocol import Lane
from irscope.provenance.trails import keep_trails
from irscope.store.store import Store
from irscope.system.streams import complain
from irscope.vocabulary.visible import printable


def index_folder(store: str) -> str:
    """Where indexes of big traces are kept: beside the run store."""
    return os.path.join(os.path.dirname(os.path.abspath(store)), "traces")


def open_trace(options: argparse.Namespace) -> int:
    """Opens a trace or an artifact and prints what is in it."""
    try:
        kind = kind_of(options.trace)
    except ArtifactError as error:
        complain(f"irscope: {printable(str(error))}")
        return 3
    if kind is not None:
        from irscope.cli.artifacts import print_artifact  # here: traces do not need it

        return print_artifact(options, kind)
    if options.run is not None or not is_trace(options.trace):
        return open_profile(options)
    folder = index_folder(options.store)
    if options.overview or options.follow:
        from irscope.cli.indexing import follow, overview  # here: only big traces need it

        return (follow if options.follow else overview)(options, folder)
    roots = Roots(os.path.abspath(options.source_root or os.getcwd()), bool(options.source_root), tuple(options.map))
    progress = ProgressLine()
    with Store(options.store) as store:
        try:
            run = open_traces(
                TraceSpec(options.trace, roots, options.log, options.strict, options.compile, folder),
                store,
                progress.see,
            )
        except TraceError as error:
            progress.wipe()
            complain(f"irscope: {printable(str(error))}")
            return 3
        progress.wipe()
        keep_trails(store, run)
        use_cells(store, run)
        print_report(controlled(store.report(run, sizes=options.json), Lane.DEEP, {}, {}), options.json)
        store.tidy(run)
    return 0
