"""AOTInductor's own functions: they are what a program calls, yet their names are private."""

from __future__ import annotations

import importlib
import sys
import warnings
from typing import Any

from irscope.internals.exporting import silence
from irscope.internals.names import PrivateName

_MODULE, _VERSIONS = "torch._inductor", "2.13"
_COMPILE = PrivateName("the package of AOTInductor", _MODULE, "aoti_compile_and_package", _VERSIONS)
_LOAD = PrivateName("the package of AOTInductor", _MODULE, "aoti_load_package", _VERSIONS)


def compile_package(exported: Any, path: str) -> None:
    """Compiles an ``ExportedProgram`` into the package ``path``; raises what AOTInductor raises."""
    torch: Any = sys.modules["torch"]
    importlib.import_module(_MODULE)
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    with silence(), warnings.catch_warnings(), torch.no_grad(), torch.random.fork_rng(devices=devices):
        warnings.simplefilter("ignore")
        _COMPILE.get()(exported, package_path=path)


def load_package(path: str) -> Any:
    """The program in a package, to be called as the exported one is.  The file may be deleted then."""
    with silence(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _LOAD.get()(path)
