"""What a first compile of a process imports and meets, for the fork server, which does it ahead.

There is no run yet, so a name that does not fit leaves no capture gap.  A module that cannot be imported is told to the
user as the reason why there is no fork server; a break that is missing costs some time at the first run.
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
