"""Signals that the capture of a pipeline sends to the findings: what happened, where no record of the trace says it."""

from __future__ import annotations

KERNELS_LINKED = "kernels-linked"
"""The kernels of a compile and their origins are known.  Data: the kernels."""
FUSED = "fused"
"""Inductor has scheduled a graph.  Data: the `FusionLog`."""
CACHE_MISSED = "cache-missed"
"""A graph is not in the FX graph cache.  Data: its key, its key in an earlier run or None, the names of its inputs; the
payload is that of the trace's record."""
