"""The devices that a client can estimate the times of nodes for, with what each does at most."""

from __future__ import annotations

from irscope.ir.roofline import TARGETS, THIS_CPU, Peaks
from irscope.profiling.changes import stored_profile
from irscope.store.store import Store

from irscope_server.graph.answers import EstimateTarget, Rate

SHORT = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32",
    "int16": "i16", "int8": "i8", "uint8": "u8", "bool": "b8", "complex64": "c64", "complex128": "c128",
    "float8_e4m3fn": "f8e4m3fn", "float8_e5m2": "f8e5m2",
}  # fmt: skip
"""Dtypes as printed graphs have them; any other by its own name."""


def targets(cpu: Peaks | None) -> tuple[EstimateTarget, ...]:
    """All of them; the client chooses, since the device that a script ran on may be none of these.

    Args:
        cpu: The machine's own CPU, where a profile measured it.
    """
    return tuple(
        EstimateTarget(
            peaks.name,
            peaks.bandwidth,
            tuple(Rate(SHORT.get(dtype, dtype), rate) for dtype, rate in peaks.flops.items()),
        )
        for peaks in (*([cpu] if cpu is not None else []), *TARGETS.values())
    )


def cpu_of(store: Store, script: str) -> Peaks | None:
    """What the newest profile of a script measured of the CPU, or else that of another script; None if none did."""
    for wanted in (script, None):
        profiled = store.newest_profiled(wanted)
        profile = stored_profile(store, profiled) if profiled is not None else None
        if profile is not None and profile.cpu_peaks is not None:
            moved, worked = profile.cpu_peaks
            return Peaks(THIS_CPU, moved, {"float32": worked})
    return None
