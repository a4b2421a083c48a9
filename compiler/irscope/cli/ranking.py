"""``irscope run --world`` and ``--nproc-per-node``: ranks of a job, merged."""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Mapping

from irscope.cli.finishing import finish_report
from irscope.cli.report import use_cells
from irscope.driver.driver import RunSpec, execute
from irscope.driver.merging import merge
from irscope.driver.ranks import rank_spec, ranks_of, ranks_on_this_machine, real_specs, run_ranks
from irscope.findings.control import controlled
from irscope.protocol import Outcome, OutcomeKind
from irscope.store.store import Store


def run_world(spec: RunSpec, options: argparse.Namespace, baseline: Mapping[str, int]) -> int:
    """Runs the ranks, merges them, and prints their report; the exit code."""
    if options.exit_code or options.check_without_compile:
        raise LookupError(
            "--exit-code and --check-without-compile are for one process: leave them out with several ranks."
        )
    world = options.world or options.nproc_per_node
    if options.world:
        specs = [
            rank_spec(spec, world, rank, options.nproc_per_node or 0) for rank in ranks_of(options.ranks, options.world)
        ]
    else:
        specs = real_specs(spec, ranks_on_this_machine(world))
    echo = _Lines(options.json)
    done = run_ranks(
        specs, options.store, on_bytes=echo, on_end=echo.end,
        worker=(execute.__kwdefaults__ or {}).get("worker"),
    )  # fmt: skip
    with Store(options.store) as store:
        use_cells(store, done[0].run)
        report = merge(store, world, done)
        report = controlled(report, spec.lane, dict(options.severity), baseline)
        for one in done:
            store.tidy(one.run, packs=False)
    finish_report(report, options)
    kinds = {one.outcome.kind for one in done}
    return 3 if kinds == {OutcomeKind.ENVIRONMENT_ERROR} else 0


class _Lines:
    """Prints what the ranks print, line by line, each with its rank, as torchrun does."""

    def __init__(self, to_stderr: bool) -> None:
        self._to_stderr = to_stderr
        self._left: dict[tuple[int, str], bytes] = {}
        self._lock = threading.Lock()

    def __call__(self, rank: int, stream: str, data: bytes) -> None:
        with self._lock:
            *lines, rest = (self._left.get((rank, stream), b"") + data).split(b"\n")
            self._left[rank, stream] = rest
            for line in lines:
                self._print(rank, stream, line)

    def end(self, rank: int, outcome: Outcome) -> None:
        """A rank has ended: prints the line that it did not end."""
        with self._lock:
            for stream in ("stdout", "stderr"):
                if rest := self._left.pop((rank, stream), b""):
                    self._print(rank, stream, rest)

    def _print(self, rank: int, stream: str, line: bytes) -> None:
        out = sys.stderr if self._to_stderr or stream == "stderr" else sys.stdout
        try:
            out.buffer.write(b"[rank %d] " % rank + line + b"\n")
            out.buffer.flush()
        except OSError:  # the report will fail as well, which says so
            return
