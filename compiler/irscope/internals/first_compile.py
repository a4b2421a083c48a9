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

# Patterns of 2.9 are made without a device.
FAKE_INIT = PrivateName(
    "patterns of passes, ahead of the first run",
    "torch._inductor.pattern_matcher",
    "init_once_fakemode",
    "2.9 and 2.13",
)
"""What Inductor registers patterns in: fake tensors, and no count of what is found meanwhile."""
PADDING_PATTERNS = PrivateName(
    "patterns of passes, ahead of the first run", "torch._inductor.fx_passes.pad_mm", "_pad_mm_init", "2.9 and 2.13"
)
ATTENTION_PATTERNS = PrivateName(
    "patterns of passes, ahead of the first run",
    "torch._inductor.fx_passes.fuse_attention",
    "_sfdp_init",
    "2.9 and 2.13",
)
"""Both remember that they were called.  Their patterns are read from files: nothing is traced, and no thread begins."""
PRECOMPILED_HEADER = PrivateName(
    "the header of kernels, ahead of the first run", "torch._inductor.codecache", "_precompile_header", "2.9 and 2.13"
)
"""Runs the preprocessor over torch's headers to find out whether they have changed, once in each process."""
KERNEL_LIBRARY = PrivateName(
    "the header of kernels, ahead of the first run",
    "torch._inductor.codecache",
    "CppPythonBindingsCodeCache",
    "2.9 and 2.13",
)
"""Its ``load_async(text, submit_fn=f)`` makes the header, and hands the compile of the text to ``f``."""
DESCRIBED = PrivateName(
    "patterns of passes, ahead of the first run", "torch._subclasses.meta_utils", "DESCRIBER_NEXT_ID", "2.9 and 2.13"
)
"""A number in records of the trace, which counts fake tensors made by patterns, too."""
