"""PyTorch/XLA in this process: its device, the scopes of its lazy tensors, and what it counts.

All of it is checked on torch_xla 2.9.0 with torch 2.9.0, the last version there is.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from irscope.internals.hooks import Undo, replace_attribute

_DEBUG = "XLA_HLO_DEBUG"


class TorchXla:
    """The package, with its device in use.

    Args:
        folder: Where XLA writes what it compiles.  It and the lazy tensors read that from the environment, once; the
            script's environment is afterwards what it was.

    Raises ImportError if the package is not installed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.was_imported = "torch_xla" in sys.modules
        before = dict(os.environ)
        flags = f"--xla_dump_to={folder} --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=.*"
        os.environ.update({"XLA_IR_DEBUG": "1", _DEBUG: "1"})
        os.environ["XLA_FLAGS"] = f"{before.get('XLA_FLAGS', '')} {flags}".strip()
        os.environ.setdefault("PJRT_DEVICE", "CPU")
        try:
            package: Any = importlib.import_module("torch_xla")
            self._core = package._XLAC
            self.device: Any = package.device()
            self._torch: Any = sys.modules["torch"]
            (self._torch.ones(2).to(self.device) + 1).cpu()  # from now on they have read all variables
        finally:
            os.environ.clear()
            os.environ.update(before)
        self.forget()

    def forget(self) -> None:
        """Removes what was written until now."""
        for file in self.folder.iterdir():
            if file.is_file():
                file.unlink()

    def unfinished(self, tensors: Sequence[Any]) -> list[Any]:
        """The tensors among these that are not computed yet."""
        told = self._core._check_tensor_need_materialization(list(tensors)) if tensors else []
        return [one for one, is_unfinished in zip(tensors, told, strict=True) if is_unfinished]

    def lazy_ir(self, tensors: Sequence[Any]) -> str:
        """The lazy operations that compute some tensors, as text."""
        return str(self._core._get_xla_tensors_text(list(tensors))).strip("\n") + "\n"

    def stop_tracing(self) -> None:
        """From now on lazy operations are made without their places and scopes."""
        self._core._set_ir_debug(False)

    def scope(self, name: str) -> AbstractContextManager[None]:
        """What names the lazy operations that are made inside."""
        return _Scope(self._core, name)

    def around(self, name: str, call: Callable[..., Any]) -> Undo:
        """Calls ``call(function, …)`` in place of a function of PyTorch/XLA's; returns what undoes this."""
        return replace_attribute(self._core, name, functools.partial(call, getattr(self._core, name)))

    def is_eager(self) -> bool:
        """Whether each operation is run at once, as the script can ask for."""
        return bool(self._core._get_use_eager_mode())

    def has_compiled(self) -> bool:
        """Whether XLA has compiled a graph since `forget`."""
        return any(file.name.endswith(".before_optimizations.txt") for file in self.folder.iterdir())

    def compiled(self) -> int:
        """How many graphs were compiled until now."""
        return int(self._core._xla_counter_value("UncachedCompile") or 0)

    def executed(self) -> int:
        """How many graphs were run until now."""
        return int(self._core._xla_counter_value("ExecuteComputation") or 0)

    def fallbacks(self, operator: str) -> int:
        """How often an operator, such as ``aten::nonzero``, ran on the host because XLA does not have it."""
        return int(self._core._xla_counter_value(operator) or 0)

    def stablehlo(self, tensors: Sequence[Any]) -> str:
        """StableHLO of what computes some tensors, with the scopes of its operations."""
        before = os.environ.get(_DEBUG)
        os.environ[_DEBUG] = "1"  # this is read at each call
        try:
            text = self._core._get_stablehlo(list(tensors), str(self.device), [], False)
        finally:
            if before is None:
                del os.environ[_DEBUG]
            else:
                os.environ[_DEBUG] = before
        return str(text.decode("utf-8", "replace"))

    def sync(self) -> None:
        """Computes all lazy tensors that are in use, as one graph, and waits for it."""
        self._core._xla_sync_live_tensors(str(self.device), [], True)


class _Scope(AbstractContextManager[None]):
    def __init__(self, core: Any, name: str) -> None:
        self._core, self._name = core, name

    def __enter__(self) -> None:
        self._pushed = self._core.profiler.scope_pusher(self._name)

    def __exit__(self, *_: object) -> None:
        del self._pushed  # its end is the end of the scope
