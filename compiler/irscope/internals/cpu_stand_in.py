"""Has this process take the CPU for one with another instruction set, so that Inductor writes its C++ code for that.

For a process that generates code and ends: what is changed is never set back, and no kernel is executed.  It imports
nothing of irscope, since the user's interpreter loads it as a file, too (`inductor_command.py`).

Checked on torch 2.11 and 2.13.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

_CLASSES = {"avx2": "VecAVX2", "avx512": "VecAVX512", "amx": "VecAMX"}
MARCH = {"avx2": "x86-64-v3", "avx512": "x86-64-v4", "amx": "sapphirerapids"}
"""What the compiler's ``-march=native`` is on such a CPU, at least."""
_USERS = ("codecache", "codegen.cpp", "codegen.cpp_micro_gemm", "cpp_builder")
"""Modules of Inductor's that take the functions over by name when they are imported."""


def become(instructions: str) -> None:
    """Makes this process compile for such a CPU.

    Args:
        instructions: The name of a set: ``avx2``, ``avx512`` or ``amx``.

    Raises AttributeError or KeyError if torch is not as expected.
    """
    vector: Any = importlib.import_module("torch._inductor.cpu_vec_isa")
    kind: Any = getattr(vector, _CLASSES[instructions])
    # Whether it works is found out by compiling and loading a file, which this CPU may not be able to.
    chosen = type(kind.__name__, (kind,), {"__bool__": lambda _: True, "__hash__": kind.__hash__})()
    importlib.import_module("torch._inductor.config").cpp.simdlen = None
    for name in ("cpu_vec_isa", *_USERS):
        module = sys.modules.get(f"torch._inductor.{name}")
        for function, answer in (("pick_vec_isa", chosen), ("valid_vec_isa_list", [chosen])):
            if hasattr(module, function):
                setattr(module, function, _answering(answer))


def _answering(answer: Any) -> Any:
    def answered(*_: Any, **__: Any) -> Any:
        return answer

    answered.cache_clear = lambda: None  # type: ignore[attr-defined]
    return answered
