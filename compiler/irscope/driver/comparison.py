"""Compares what several pipelines make of one script, and keeps the result with their runs."""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import Callable, Sequence

from irscope.comparing.pipelines import Comparison, PipelineFigures, figures_of
from irscope.driver.driver import RunSpec
from irscope.driver.rounds import Measured, measured
from irscope.protocol import OutcomeKind, to_json
from irscope.store.store import Store
from irscope.vocabulary.lanes import DEFAULT_ROUNDS


class ComparisonCancelled(Exception):
    """The comparison was cancelled."""


def compared(
    specs: Sequence[RunSpec],
    store_path: str,
    rounds: int = DEFAULT_ROUNDS,
    *,
    on_step: Callable[[str], None] = lambda text: None,
    on_output: Callable[[str, str], None] = lambda stream, text: None,
    cancel: threading.Event | None = None,
) -> Comparison:
    """Runs one script through the pipeline of each spec, times what was compiled, and stores the figures.

    The other parameters are those of `irscope.driver.rounds.measured`.

    Raises:
        ComparisonCancelled: ``cancel`` was set.  The runs that have ended stay in the store.
    """
    with tempfile.TemporaryDirectory(prefix="irscope-compare-") as folder:
        found = measured(specs, store_path, folder, rounds, on_step=on_step, on_output=on_output, cancel=cancel)
    if cancel is not None and cancel.is_set():
        raise ComparisonCancelled
    on_step("comparing")
    with Store(store_path) as store:
        comparison = Comparison(specs[0].stored_script, tuple(_figures(store, one) for one in found))
        store.put_comparison([one.run for one in comparison.pipelines if one.run], to_json(comparison))
    return comparison


def _figures(store: Store, one: Measured) -> PipelineFigures:
    outcome = one.outcome
    problem = one.problem or (outcome.message if outcome and outcome.kind is not OutcomeKind.COMPLETED else "")
    report = None
    if one.run:
        store.tidy(one.run)
        with contextlib.suppress(LookupError):  # a run that did not begin is gone now
            report = store.report(one.run)
    told = {"programs": one.programs, "rounds": one.rounds}
    return figures_of(store, report, one.spec.pipeline, problem, told)
