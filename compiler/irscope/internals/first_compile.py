"""What a first compile of a process imports and meets, for the fork server, which does it ahead.

The fork server does this before any run, so a name that does not fit leaves no capture gap.  If a module cannot be
imported, the user sees that as the reason why runs start slowly; a missing break only makes the first run slower.
"""

from __future__ import annotations

from irscope.internals.names import PrivateName

MODULES = (
    "torch._dynamo",
    "torch._dynamo.convert_frame",
    "torch._dynamo.backends.debugging",
    "torch._functorch.aot_autograd",
    "torch._inductor.compile_fx",
)
"""What it would import, over and above torch itself; in torch 2.9 to 2.15."""

GRAPH_BREAK = PrivateName("a compile ahead of the first run", "torch._dynamo", "graph_break", "2.13")
