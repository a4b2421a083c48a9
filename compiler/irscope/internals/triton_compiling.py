"""Compiles the source of one of Inductor's Triton kernels down to machine code, for the device of this process.

As Inductor's own compile workers do it: the source becomes a tuner, which compiles a configuration without loading the
binary.  Triton keeps the stages in its cache.
"""

from __future__ import annotations

import os
from typing import Any

from irscope.internals.inductor_calls import triton_cache_folder
from irscope.internals.names import PrivateName
from irscope.vocabulary.records import dataclass

_WHAT = "the stages of predicted kernels below their source"
_CODE_CACHE = PrivateName(_WHAT, "torch._inductor.codecache", "PyCodeCache", "2.11 and 2.13")
_FOLDER_OF = PrivateName(_WHAT, "torch._inductor.runtime.triton_heuristics", "triton_hash_to_path_key", "2.11 and 2.13")
_HELPERS = PrivateName(_WHAT, "torch._inductor.runtime.triton_helpers", "", "2.11 and 2.13")


class NotCompiledError(Exception):
    """A kernel cannot be compiled; the message says why."""


@dataclass(frozen=True)
class CompiledKernel:
    """Where Triton keeps a kernel that was compiled.

    Args:
        folder: The folder of Triton's cache.
        function: The name of the kernel's function, which the files have.
        file: The file of its source, which the locations in its stages name.
        config, configs: The configuration that was compiled, as printed, and those between which a real device would
            choose by timing.
    """

    folder: str
    function: str
    file: str
    config: str
    configs: tuple[str, ...]


def compiled_kernel(name: str, source: str, number: int = 1) -> CompiledKernel:
    """Compiles a configuration of a kernel, counted from 1; the first if it has not that many.

    Raises NotCompiledError, and what Triton raises.
    """
    helpers = _HELPERS.get()
    helpers.set_driver_to_gpu = helpers.set_driver_to_cpu = lambda: None  # the driver is the stand-in already
    # With the empty lines that it has in output code, so that the lines in its stages are those of a real run's.
    module = _CODE_CACHE.get().load(f"\n{source.strip()}\n")
    tuner: Any = getattr(module, name, None) or _tuner_in(module)
    if not tuner.configs:
        raise NotCompiledError("it has no configuration")
    chosen = tuner.configs[number - 1 if number <= len(tuner.configs) else 0]
    made = tuner._precompile_config(chosen)
    folder = os.path.join(triton_cache_folder(tuner.triton_meta.get("device", 0)), _FOLDER_OF.get()(made.kernel.hash))
    return CompiledKernel(folder, tuner.fn.__name__, str(tuner.filename), str(chosen), tuple(map(str, tuner.configs)))


def _tuner_in(module: Any) -> Any:
    """The kernel of a module that has another name in output code: one of the user's, of which there may be several."""
    found = [value for value in vars(module).values() if hasattr(value, "_precompile_config")]
    if len(found) != 1:
        raise NotCompiledError(f"its source defines {len(found)} kernels")
    return found[0]
