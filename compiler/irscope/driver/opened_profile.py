"""The profile of a trace from elsewhere, which may be large: it is read in batches, and these are summed up side by side."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import itertools
import os
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from irscope.ir.kineto import MOST_EVENTS, TraceError, read_events
from irscope.ir.kineto_packed import PackedParts, Place, is_large_packed
from irscope.ir.kineto_parts import PartError, parts_of, read_part
from irscope.ir.roofline import peaks_of
from irscope.profiling.batches import Columns
from irscope.profiling.columns import EventColumns
from irscope.profiling.fitting import fitting_run
from irscope.profiling.joining import Joined
from irscope.profiling.measuring import Sums
from irscope.profiling.profile import Profile
from irscope.profiling.timeline import timeline
from irscope.profiling.totals import Totals
from irscope.protocol import Report
from irscope.store.store import Store
from irscope.vocabulary.units import count

if TYPE_CHECKING:
    from concurrent.futures import Future

_BATCH = 40_000
"""Events; as objects they have some 40 MB."""
_MOST_PROCESSES = 8
_FITS_NONE = (
    "No run in {} has kernels of this trace, or its script in a stack of it. So it is not joined to a run (--run RUN)."
)
_T = TypeVar("_T")
_R = TypeVar("_R")


def opened(path: str, store: Store | None, run: str | None) -> Profile:
    """The profile of a trace, joined to a run of the store: the one that is named, else the newest that fits.

    Without a store, or where no run fits, it has the names of the trace.  Raises OSError and TraceError.
    """
    left_out: Counter[str] = Counter()
    with _no_collection():
        columns = Columns(_read(path, left_out), _BATCH)
        if not columns.steps:
            raise TraceError(f"{path} has no operators and no kernels: record it with torch.profiler.")
        joined = report = peaks = None
        fits_none: tuple[str, ...] = ()
        if store is not None and run is None:
            run = fitting_run(store, columns.names)
            fits_none = () if run else (_FITS_NONE.format(store.path),)
        if store is not None and run is not None:
            report = store.report(run)
            peaks = peaks_of(store.device_of(run))
            joined = Joined(store, report, peaks)
        sums = Sums(joined, report, ())
        for totals in _parts(columns, joined, report):
            sums.totals.add(totals)
    found = sums.profile(peaks.name if peaks else "", columns.steps)
    return dataclasses.replace(
        found, warnings=(*fits_none, *(_warning(why, number) for why, number in left_out.items()))
    )


def _warning(why: str, number: int) -> str:
    return f"{count(number, 'event')} of the trace could not be read ({why})."


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Nothing here has cycles, and to look for some among millions of objects takes as long as to make them."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _read(path: str, left_out: Counter[str]) -> EventColumns:
    """The events of a trace; several processes read the parts of a large one."""
    parts = parts_of(path, _processes())
    if len(parts) > 1:
        with contextlib.suppress(
            PartError
        ):  # a cut was no cut; or the trace is damaged, and the other reader says where
            return _read_in_parts(path, parts, left_out)
    if _processes() > 1 and is_large_packed(path):
        with contextlib.suppress(PartError):
            return _read_packed(path, left_out)
    return EventColumns.read(functools.partial(read_events, path), left_out)


def _read_in_parts(path: str, parts: list[tuple[int, int]], left_out: Counter[str]) -> EventColumns:
    return _put_together(_side_by_side(functools.partial(_read_part, path), parts), left_out)


def _put_together(parts: Iterable[tuple[EventColumns, Counter[str]]], left_out: Counter[str]) -> EventColumns:
    whole, missing = EventColumns(), Counter[str]()
    for columns, more in parts:
        whole.extend(columns)
        missing.update(more)
        if len(whole) > MOST_EVENTS:
            raise TraceError(f"The trace has more than {MOST_EVENTS} events.")
    left_out.update(missing)
    return whole


def _read_part(path: str, part: tuple[int, int]) -> tuple[EventColumns, Counter[str]]:
    left_out: Counter[str] = Counter()
    return EventColumns.read(functools.partial(read_part, path, *part), left_out), left_out


_PACKED: list[PackedParts] = []
"""What the processes that read parts have from their parent, without a copy."""


def _read_packed(path: str, left_out: Counter[str]) -> EventColumns:
    """The events of a packed trace: this process unpacks, and others read.  Raises PartError, and as `read_events`."""
    ahead = _processes() + 2
    with PackedParts(path, ahead) as packed, contextlib.closing(packed.places()) as places:
        _PACKED[:] = [packed]
        try:
            first = next(places)
            if first.is_last:
                return _put_together([_read_place(first)], left_out)
            # When it asks for a place that is used again, it has what was read there.
            return _put_together(_side_by_side(_read_place, itertools.chain([first], places), ahead), left_out)
        finally:
            _PACKED.clear()


def _read_place(place: Place) -> tuple[EventColumns, Counter[str]]:
    left_out: Counter[str] = Counter()
    return EventColumns.read(functools.partial(_PACKED[0].read, place), left_out), left_out


_STATE: list[tuple[Columns, Joined | None, Report | None]] = []
"""What the processes that sum up have from their parent, without a copy."""


def _parts(columns: Columns, joined: Joined | None, report: Report | None) -> Iterator[Totals]:
    _STATE[:] = [(columns, joined, report)]
    try:
        if min(_processes(), columns.batches) > 1:
            yield from _side_by_side(_part, range(columns.batches))
        else:
            yield from map(_part, range(columns.batches))
    finally:
        _STATE.clear()


def _side_by_side(work: Callable[[_T], _R], things: Iterable[_T], ahead: int = MOST_EVENTS) -> Iterator[_R]:
    """The results in the order of the things, of which so many are taken before the first result is given.

    Raises PartError if a process was killed.
    """
    # Few traces need these, and they take time to import.  A pool of `multiprocessing` would wait for ever if one
    # of its processes was killed, for example since memory is short.
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    from irscope.system.warden import end_with_parent

    try:
        with ProcessPoolExecutor(_processes(), multiprocessing.get_context("fork"), end_with_parent) as pool:
            waiting: deque[Future[_R]] = deque()
            for thing in things:
                waiting.append(pool.submit(work, thing))
                if len(waiting) >= ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise PartError(
            "A process that reads the trace was killed, maybe since memory is short: record fewer steps."
        ) from error


def _part(number: int) -> Totals:
    columns, joined, report = _STATE[0]
    batch = columns.batch(number)
    sums = Sums(joined, report, ())
    found = timeline(batch.events, busy=batch.busy, begin=batch.begin, has_device=batch.has_device)
    sums.add(found, batch.typical, batch.has_picture)
    return sums.totals


def _processes() -> int:
    """How many may work; 1 where a fork is not safe, or cannot be had."""
    return min(len(os.sched_getaffinity(0)), _MOST_PROCESSES) if sys.platform == "linux" else 1
