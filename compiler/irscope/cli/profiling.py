"""``irscope profile``, and ``irscope open`` of a profiler's trace: measured time on the lines that cost it."""

from __future__ import annotations

import argparse
import sys

from irscope.cli.measured import profile_lines
from irscope.cli.progress import ProgressLine
from irscope.cli.running import entry_of
from irscope.cli.text import Paint, print_json, to_stdout
from irscope.driver.driver import RunSpec
from irscope.driver.opened_profile import opened
from irscope.driver.profiling import NotMeasured, profiled
from irscope.ir.kineto import TraceError
from irscope.profiling.profile import Profile
from irscope.protocol import to_json
from irscope.provenance.trails import keep_trails
from irscope.store.file import default_path
from irscope.store.store import Store
from irscope.system.streams import complain
from irscope.vocabulary.visible import printable


def profile(options: argparse.Namespace) -> int:
    """Runs the script, measures what it compiled and prints whose time it is."""
    if options.start:
        from irscope.cli.starting import profile_start  # here: no other profile needs it

        return profile_start(options)
    entry, script, model = entry_of(options)
    spec = RunSpec(
        script=script, args=tuple(options.args), python=options.python, cwd=options.cwd, entry=entry, model=model,
        symbolic_trace=False, profile=options.calls, memory=options.memory,
    )  # fmt: skip
    progress = ProgressLine()
    with Store(options.store) as store:
        try:
            run, _, found = profiled(
                spec, store, on_message=progress.see, stdout=sys.stderr.fileno() if options.json else None,
                against=options.against, without_breaks=options.without_breaks,
            )  # fmt: skip
        except NotMeasured as error:
            progress.wipe()
            complain(f"irscope: {printable(str(error))}")
            return 3
        progress.wipe()
        _print(found, options)
        keep_trails(store, run)
        store.tidy(run)
    return 0


def open_profile(options: argparse.Namespace) -> int:
    """Prints whose time a trace from elsewhere is."""
    is_named = options.store != default_path()  # then it is the store of the trace's run
    try:
        if not options.run and not is_named:
            found = opened(options.trace, None, None)
        else:
            with Store(options.store) as store:
                found = opened(options.trace, store, store.find_run(options.run) if options.run else None)
    except TraceError as error:
        complain(f"irscope: {printable(str(error))}")
        return 3
    _print(found, options)
    return 0


def _print(found: Profile, options: argparse.Namespace) -> None:
    if options.json:
        print_json(to_json(found))
    else:
        to_stdout(profile_lines(found, Paint(sys.stdout), show_all=options.all))
        if found.run:
            to_stdout([f"irscope show {found.run}"])
