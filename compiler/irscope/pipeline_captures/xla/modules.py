"""The modules that are being called."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


class Modules:
    """Keeps the path and the class of the modules that are being called, the innermost last.

    Args:
        root: The module whose paths are given; None: those of the outermost module that is called.

    Attributes:
        stack: Path and class of each.
        on_root: Called with the outermost module before it runs.
    """

    def __init__(self, root: Any = None) -> None:
        self._torch: Any = sys.modules["torch"]
        self.stack: list[tuple[str, str]] = []
        self.on_root: Callable[[Any], None] = lambda module: None
        self._follows = root is None
        self._paths = self._paths_of(root)
        self._handles: list[Any] = []

    def _paths_of(self, root: Any) -> dict[int, str]:
        named = root.named_modules() if isinstance(root, self._torch.nn.Module) else ()
        return {id(module): name for name, module in named}

    def begin(self) -> None:
        """From now on calls are seen."""
        calls = self._torch.nn.modules.module
        self._handles = [
            calls.register_module_forward_pre_hook(self._enter),
            calls.register_module_forward_hook(self._leave, always_call=True),
        ]

    def end(self) -> None:
        """From now on they are not."""
        for handle in self._handles:
            handle.remove()
        self.stack.clear()

    def _enter(self, module: Any, _given: Any) -> None:
        if self._follows and not self.stack:
            self._paths = self._paths_of(module)
            self.on_root(module)
        name = self._paths.get(id(module), type(module).__name__)
        self.stack.append((f"L['self'].{name}" if name else "L['self']", type(module).__qualname__))

    def _leave(self, _module: Any, _given: Any, _result: Any) -> None:
        if self.stack:
            self.stack.pop()
