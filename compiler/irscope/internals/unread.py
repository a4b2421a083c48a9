"""Records of PyTorch's trace that irscope does not read are not made.

A handler on the trace makes PyTorch write all of its records, and some take long: a graph that is in another record
as well, every input described one by one.  Where only irscope listens, those that it does not read are left out, as
they are if no one listens.

Timed events, which are most of the records, are handed over as PyTorch has them.  PyTorch would write each as JSON in
Python, and take its digest, and irscope would read it again.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, Protocol

from irscope.internals.compile_context import current_ids
from irscope.internals.frames import FrameLook, callers
from irscope.internals.hooks import Hook, Undo, replace_attribute

UNREAD = frozenset(
    [
        "describe_storage", "describe_tensor", "describe_source", "after_joint_graph", "fx_graph_runnable",
        "aot_forward_graph_fw_metadata", "runtime_wrapper_orchestration",
    ]
)  # fmt: skip
"""Events, and names of artifacts."""
TIMED = "chromium_event"

_WHAT, _VERSIONS = "skipping unused trace records: all are written, which takes longer", "2.13"
EVENT = FrameLook(
    what=_WHAT,
    function="trace_structured",
    file="torch/_logging/_internal.py",
    local="name",
    fits=lambda value: isinstance(value, str),
    versions=_VERSIONS,
    required=False,  # others may ask for the handlers, too
)
FACTS = FrameLook(
    what=_WHAT,
    function="trace_structured",
    file="torch/_logging/_internal.py",
    local="metadata_fn",
    fits=callable,
    versions=_VERSIONS,
    required=False,
)
PAYLOAD = FrameLook(
    what="reading timed events without their text: they are written and read, which takes longer",
    function="trace_structured",
    file="torch/_logging/_internal.py",
    local="payload_fn",
    fits=callable,
    versions=_VERSIONS,
    required=False,
)


class Timed(Protocol):
    """A handler that takes timed events without a record."""

    def timed(self, ids: dict[str, Any], event: dict[str, Any]) -> None:
        """Takes an event of this thread, which belongs to the compile of these ids."""


def hook(ours: type[Timed]) -> Hook:
    """Leaves them out while all handlers of PyTorch's trace are of this class."""

    def apply(internal: types.ModuleType) -> Undo:
        logger = internal.trace_log
        if not callable(internal.trace_structured):
            raise TypeError("trace_structured is not a function")
        return replace_attribute(internal, "trace_log", _Trace(logger, ours))

    return Hook(_WHAT, "torch._logging._internal", _VERSIONS, apply)


class _Trace:
    """PyTorch's trace logger.  It has no handlers while ``trace_structured`` asks for those of such a record."""

    def __init__(self, logger: Any, ours: type[Timed]) -> None:
        object.__setattr__(self, "_logger", logger)
        object.__setattr__(self, "_ours", ours)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._logger, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._logger, name, value)

    @property
    def handlers(self) -> list[Any]:
        found: list[Any] = self._logger.handlers
        asking = next(callers())
        if not EVENT.is_at(asking) or not all(isinstance(one, self._ours) for one in found):
            return found
        event = EVENT.read(asking)
        if event == TIMED:
            return [] if _handed_over(asking, found) else found
        return [] if _name(event, asking) in UNREAD else found


def _handed_over(asking: types.FrameType, handlers: list[Timed]) -> bool:
    """Gives a timed event to the handlers; false if it is not as expected."""
    make: Callable[[], Any] | None = PAYLOAD.read(asking)
    try:
        event = None if make is None else make()
        ids = current_ids()
    except Exception:  # noqa: BLE001  the maker of the record gets the error as usual, when PyTorch asks
        return False
    if not isinstance(event, dict) or ids is None:
        return False
    for handler in handlers:
        handler.timed(ids, event)
    return True


def _name(event: object, asking: types.FrameType) -> object:
    """The event of a record, or the name of the artifact, by the arguments of ``trace_structured``."""
    if event != "artifact" or (facts := FACTS.read(asking)) is None:
        return event
    try:
        return facts().get("name")
    except Exception:  # noqa: BLE001  the maker of the record gets the error as usual, when PyTorch asks
        return event
