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

TORCH_KEY = PrivateName(
    "the hash of torch's files, ahead of the first run", "torch._inductor.codecache", "torch_key", "2.9 to 2.13"
)
"""Reads all of torch's Python files, in half a second; has ``set`` for who knows the answer."""
VECTOR_ISA = PrivateName(
    "what the processor can do, ahead of the first run", "torch._inductor.cpu_vec_isa", "VecISA", "2.9 to 2.13"
)
"""Its ``check_build(code)`` compiles and loads a small library in a separate process: a second and a half for all."""
VECTOR_ISAS = PrivateName(
    "what the processor can do, ahead of the first run",
    "torch._inductor.cpu_vec_isa",
    "valid_vec_isa_list",
    "2.9 to 2.13",
)
CPP_CONFIG = PrivateName(
    "what the processor can do, ahead of the first run", "torch._inductor.config", "cpp", "2.9 to 2.13"
)
