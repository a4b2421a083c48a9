"""The devices that a client can estimate the times of nodes for, with what each does at most."""

from __future__ import annotations

from irscope.ir.roofline import TARGETS

from irscope_server.graph.answers import EstimateTarget, Rate

SHORT = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32",
    "int16": "i16", "int8": "i8", "uint8": "u8", "bool": "b8", "complex64": "c64", "complex128": "c128",
    "float8_e4m3fn": "f8e4m3fn", "float8_e5m2": "f8e5m2",
}  # fmt: skip
"""Dtypes as printed graphs have them; any other by its own name."""


def targets() -> tuple[EstimateTarget, ...]:
    """All of them; the client chooses, since the device that a script ran on may be none of these."""
    return tuple(
        EstimateTarget(
            peaks.name,
            peaks.bandwidth,
            tuple(Rate(SHORT.get(dtype, dtype), rate) for dtype, rate in peaks.flops.items()),
        )
        for peaks in TARGETS.values()
    )
