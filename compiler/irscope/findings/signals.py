"""Signals that the capture of a pipeline sends to the findings: what happened, if no record of the trace says it."""

from __future__ import annotations

KERNELS_LINKED = "kernels-linked"
"""The kernels of a compile and their origins are known.  Data: the kernels."""
FUSED = "fused"
"""Inductor has scheduled a graph.  Data: the `FusionLog`."""
CACHE_MISSED = "cache-missed"
"""A graph is not in the FX graph cache.  Data: its key, its key in an earlier run or None, the names of its inputs; the
payload is that of the trace's record."""
CUDA_GRAPH_PREDICTED = "cuda-graph-predicted"
"""A device that is not here would run a graph, or a part of it, without CUDA graphs.  Data: the name of the target, and
the reason as PyTorch words it, with the user's stack."""
FUSION_PREDICTED = "fusion-predicted"
"""Inductor has scheduled a graph for a device that is not here.  Data: the name of the target, and the refusals."""
KERNEL_IS_SLOW = "kernel-is-slow"
VALUE_NEEDED = "value-needed"
"""A script on tensors without storage needs a value.  Data: what needs it."""
