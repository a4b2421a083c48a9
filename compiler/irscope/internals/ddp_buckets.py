"""DDP's collectives, from the entries of PyTorch's flight recorder."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from irscope.internals.collective_calls import Call, Calls, Row
from irscope.internals.flight_recorder import place_of

_DDP_FILE, _ENGINE = "/torch/nn/parallel/distributed.py", "_engine_run_backward"
_MOST_MODULES = 2
_BYTES = {
    "Float": 4,
    "Double": 8,
    "Half": 2,
    "BFloat16": 2,
    "Long": 8,
    "Int": 4,
    "Short": 2,
    "Char": 1,
    "Byte": 1,
    "Bool": 1,
}
"""By the flight recorder's names of types; others are not known."""


def ddp_rows(
    recorded: Sequence[dict[str, Any]],
    wrapped: Sequence[Sequence[tuple[str, int]]],
    at: Callable[[int], tuple[str, int]] = lambda time: ("", 0),
    waits: Sequence[tuple[int, int]] = (),
) -> list[Row]:
    """DDP's collectives, from the entries of the flight recorder.

    Those of a bucket are all-reduces that no Python function has called.  A bucket runs beside the rest of the backward:
    the rank goes on with it at least until the last bucket begins.

    Args:
        wrapped: The parameters of each model in DDP, with their numbers of elements.
        at: As for `irscope.internals.flight_recorder.arrivals`.
        waits: As `irscope.internals.device_spans.BackwardWaits` has them.
    """
    rows: dict[tuple[Any, ...], Calls] = {}
    backward: list[_Bucket] = []
    totals = {sum(size for _, size in parameters): list(parameters) for parameters in wrapped}
    for entry in filter(_is_of_ddp, recorded):
        frames, time = entry.get("frames") or (), int(entry["time_created_ns"])
        elements, size = _sizes(entry)
        done = sum(bucket.elements for bucket in backward)
        is_bucket = _is_bucket(entry)
        module = _bucket_modules(totals, done, elements) if is_bucket else ""
        key = "DDP", _operation(entry), module, -1, size, *(place_of(frames) if place_of(frames)[0] else at(time))
        calls = rows.setdefault(key, Calls())
        calls.calls += 1
        if is_bucket:
            backward.append(_Bucket(calls, elements, time, int((entry.get("duration_ms") or 0) * 1e6)))
            if done + elements in totals:
                _close(backward, next((waited for end, waited in waits if end >= time), None))
                backward = []
    return [[*key, *calls.row()] for key, calls in rows.items()]


class _Bucket(NamedTuple):
    calls: Calls
    elements: int
    begun: int
    """Nanoseconds since the epoch."""
    took: int
    """Nanoseconds on the device; 0 if it has not timed it."""


def _sizes(entry: dict[str, Any]) -> tuple[int, int]:
    """How many elements and bytes; -1 if those are not known."""
    elements = sum(math.prod(map(int, sizes)) for sizes in entry.get("input_sizes") or ())
    return elements, elements * _BYTES.get(str(next(iter(entry.get("input_dtypes") or ()), "")), 0) or -1


def _operation(entry: dict[str, Any]) -> str:
    return str(entry.get("profiling_name", "")).partition(":")[2]


def _is_bucket(entry: dict[str, Any]) -> bool:
    """Whether autograd's engine itself was the innermost Python function; its own thread has no Python function."""
    frames = entry.get("frames") or ()
    return _operation(entry) == "all_reduce" and (not frames or str(frames[0].get("name")) == _ENGINE)


def _is_of_ddp(entry: dict[str, Any]) -> bool:
    return _is_bucket(entry) or any(_DDP_FILE in str(frame.get("filename", "")) for frame in entry.get("frames") or ())


def _close(backward: Sequence[_Bucket], waited: int | None) -> None:
    """The end of a backward.

    A device reduces one bucket after the other, and waits for the last: what it waits is the end of their times.  Else all
    buckets but the last ran beside what came before that.
    """
    if waited is not None and all(bucket.took for bucket in backward):
        for bucket in reversed(backward):
            bucket.calls.on_device.append(Call(bucket.took, min(waited, bucket.took)))
            waited -= min(waited, bucket.took)
        return
    for bucket in backward[:-1]:
        bucket.calls.went_on(max(0, backward[-1].begun - bucket.begun))


def _bucket_modules(totals: dict[int, list[tuple[str, int]]], done: int, elements: int) -> str:
    """The modules of a bucket, if buckets are in the reversed order of the parameters; empty if they are not."""
    for parameters in totals.values():
        passed, mine = 0, list[str]()
        for name, size in reversed(parameters):
            if done <= passed and passed + size <= done + elements:
                mine.append(name)
            passed += size
        if mine and sum(size for name, size in parameters if name in set(mine)) == elements:
            return named_modules(mine)
    return ""


def named_modules(parameters: Iterable[str]) -> str:
    """The modules that parameters belong to: ``layers.1.down``, or ``layers.1.down, layers.1.up, …``."""
    found = list(dict.fromkeys(name.rpartition(".")[0] or "the model" for name in parameters))
    return ", ".join(found[:_MOST_MODULES]) + (", …" if len(found) > _MOST_MODULES else "")
