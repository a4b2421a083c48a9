"""The run of the store to which a trace may belong: kernels that the run generated are in it, or Python's stack of the
run's script."""

from __future__ import annotations

import re
from collections.abc import Iterable

from irscope.profiling.joining import short_name
from irscope.profiling.span_roles import kernel_name
from irscope.protocol import Report
from irscope.store.store import Store, StoreError

_FUNCTION = re.compile(r"(?P<file>.+)\(\d+\): ")
"""A Python function, as PyTorch's profiler names it; of the path it leaves out where modules are looked for."""
_MOST_RUNS = 200


def fitting_run(store: Store, names: Iterable[str]) -> str | None:
    """The newest run that fits the names of the events of a trace; None if none of the newest ones does.

    A run that generated no kernel may have called a library: then the trace has all of these calls.
    """
    known = set(map(kernel_name, names))
    files = {match["file"].replace("\\", "/") for match in map(_FUNCTION.match, known) if match is not None}
    calls = set(map(short_name, known))
    for summary in store.runs(_MOST_RUNS):
        try:
            report = store.report(summary.run, sizes=False)
        except (LookupError, StoreError):
            continue  # it was deleted meanwhile, or is damaged
        if _has_kernels(report, known, calls) or _is_script_of(report, files):
            return summary.run
    return None


def _has_kernels(report: Report, names: set[str], calls: set[str]) -> bool:
    if generated := {kernel.name for kernel in report.kernels if kernel.is_generated}:
        return not names.isdisjoint(generated)
    library = {short_name(kernel.name) for kernel in report.kernels}
    return bool(library) and library <= calls


def _is_script_of(report: Report, files: set[str]) -> bool:
    script = "/" + report.script.replace("\\", "/").lstrip("/")
    return any(script.endswith("/" + file.lstrip("/")) for file in files)
