"""Every touch of a private PyTorch name goes through a `Hook`.

A hook names the module that it waits for and the torch versions that it was checked on.  Where it cannot be applied
the run goes on without it and a *capture gap* says so; when the capture ends every hook is undone, in reverse.

Looks at local variables of PyTorch's functions need no change of PyTorch: see `irscope.internals.frames`.
"""

from __future__ import annotations

import types
from collections.abc import Callable

from irscope.internals.frames import report, report_to
from irscope.internals.importing import ImportWatcher
from irscope.protocol import CaptureGap
from irscope.vocabulary.records import dataclass

Undo = Callable[[], None]


@dataclass(frozen=True)
class Hook:
    """One change inside PyTorch.

    Args:
        what: What is not seen without it, in the user's words; the text of the capture gap.
        module: The module that must have been imported.
        versions: The torch versions on which it was checked.
        apply: Makes the change and returns what takes it back.  Any exception means that it does not fit this torch.
    """

    what: str
    module: str
    versions: str
    apply: Callable[[types.ModuleType], Undo]


class Hooks:
    """Applies hooks as their modules are imported, and receives the gaps of frame looks, too.

    A context manager: everything is undone at its end.

    Args:
        on_gap: None: the gaps go where those of the capture around go.
    """

    def __init__(self, hooks: list[Hook], on_gap: Callable[[CaptureGap], None] | None = None) -> None:
        self._hooks = hooks
        self._is_inside = on_gap is None
        self._on_gap = on_gap or report
        self._undo: list[Undo] = []
        self._watcher = ImportWatcher()

    def __enter__(self) -> Hooks:
        if not self._is_inside:
            self._undo.append(report_to(self._on_gap))
        self._watcher.install()
        for hook in self._hooks:
            self._watcher.when_imported(hook.module, lambda module, hook=hook: self._apply(hook, module))  # type: ignore[misc]
        return self

    def _apply(self, hook: Hook, module: types.ModuleType) -> None:
        try:
            self._undo.append(hook.apply(module))
        except Exception as error:  # noqa: BLE001  a hook that does not fit must never break the script
            self._on_gap(
                CaptureGap(
                    hook.what, f"{module.__name__} is not as expected ({error!r}); checked on torch {hook.versions}"
                )
            )

    def __exit__(self, *_: object) -> None:
        self._watcher.remove()
        while self._undo:
            try:
                self._undo.pop()()
            except Exception as error:  # noqa: BLE001
                self._on_gap(CaptureGap("restoring PyTorch after the run", repr(error)))


def replace_attribute(holder: object, name: str, value: object) -> Undo:
    """Sets an attribute that must exist; returns what sets it back.  Raises AttributeError if it does not exist."""
    before = getattr(holder, name)
    setattr(holder, name, value)
    return lambda: setattr(holder, name, before)


def undo_all(steps: list[Undo]) -> Undo:
    """What takes back several changes, the last one first."""

    def undo() -> None:
        for step in reversed(steps):
            step()

    return undo
