"""``torchrun … -m irscope run`` and ``srun irscope run``: one rank of a job that another launcher has started."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

from irscope.cli.finishing import finish_report
from irscope.cli.report import use_cells
from irscope.driver.driver import RunSpec, execute
from irscope.driver.jobs import Job, others_of, spec_in
from irscope.driver.merging import RankDone, merge
from irscope.findings.control import controlled
from irscope.protocol import OutcomeKind
from irscope.store.store import Store
from irscope.system.streams import complain

_WAIT_SECONDS = 60.0
"""For the other ranks of this machine to end after this one."""


def run_in_job(job: Job, spec: RunSpec, options: argparse.Namespace, baseline: Mapping[str, int]) -> int:
    """Runs this rank; the first rank of a machine then merges the others, and prints their report.  The exit code.

    The launcher has to see that a rank failed, so the exit code is 1 then.
    """
    if options.check_without_compile:
        raise LookupError("--check-without-compile is for one process: leave it out with several ranks.")
    stdout = sys.stderr.fileno() if options.json else None
    with Store(options.store) as store:
        run, outcome = execute(spec_in(job, spec), store, stdout=stdout)
        if job.merges:
            done = others_of(job, store, RankDone(job.rank, run, outcome), _WAIT_SECONDS)
            use_cells(store, done[0].run)
            report = merge(store, job.world, done)
            report = controlled(report, spec.lane, dict(options.severity), baseline)
            finish_report(report, options)
            missing = (job.local_world or job.world) - len(done)
            if missing > 0:
                complain(f"irscope: {missing} of this machine's ranks had not ended after {_WAIT_SECONDS:.0f} s.")
            for one in done:
                store.tidy(one.run, packs=False)
    if outcome.kind is OutcomeKind.ENVIRONMENT_ERROR:
        return 3
    return 0 if outcome.kind is OutcomeKind.COMPLETED else 1
