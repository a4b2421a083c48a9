"""Importing this makes torch and triton compile for an H100 that is not here; nothing is launched.

For scripts of tests, on a machine without a GPU: tensors stay on the CPU, Dynamo takes triton's kernels, Inductor and
triton compile them down to the cubin, and calling one does nothing.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.utils._triton
import triton
from triton.backends.compiler import GPUTarget

torch.utils._triton.has_triton = lambda **_: True  # before Inductor is imported, which asks once

import torch._inductor.config  # noqa: E402
from torch._dynamo.device_interface import CudaInterface  # noqa: E402
from torch._inductor.runtime import hints, triton_helpers, triton_heuristics  # noqa: E402


class Utils:
    @staticmethod
    def load_binary(*_: object) -> tuple[int, ...]:
        return 1, 1, 32, 0, 1024  # module, function, registers, spills, most threads

    @staticmethod
    def get_device_properties(_: object) -> dict[str, int]:
        return {"max_shared_mem": 232448, "multiprocessor_count": 132}


class Launcher:
    def __init__(self, *_: object) -> None:
        pass

    def __call__(self, *_: object, **__: object) -> None:
        pass


class Driver:
    utils, launcher_cls = Utils(), Launcher

    def get_current_target(self) -> Any:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, _: object) -> int:
        return 0


PROPERTIES = {"type": "cuda", "index": 0, "multi_processor_count": 132, "cc": 90, "major": 9, "warp_size": 32,
              "regs_per_multiprocessor": 65536, "max_threads_per_multi_processor": 2048,
              "max_threads_per_block": 1024}  # fmt: skip
H100 = hints.DeviceProperties(**{name: PROPERTIES[name] for name in hints.DeviceProperties._fields})
triton.runtime.driver.set_active(Driver())
hints.DeviceProperties.create = classmethod(lambda cls, device: H100)
triton_helpers.set_driver_to_cpu = triton_helpers.set_driver_to_gpu = lambda: None
triton_heuristics.CachingAutotuner.bench = lambda tuner, launcher, *args, **kwargs: float(launcher.config.num_warps)
for name in ("exchange_device", "maybe_exchange_device", "current_device", "get_raw_stream", "synchronize"):
    setattr(CudaInterface, name, staticmethod(lambda *_: 0))
torch._inductor.config.compile_threads = 1  # in this process
