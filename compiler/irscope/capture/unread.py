"""Records of PyTorch's trace that nobody reads are not made.

A handler on the trace makes PyTorch write all of its records, and some take long: a graph that stands in another record
as well, every input described one by one.  Where only irscope listens, those that it does not read are left out, as
they are where nobody listens.
"""

from __future__ import annotations

import logging
import sys
import types
from typing import Any

from irscope.capture.hooks import Hook, Undo, replace_attribute
from irscope.capture.trace import TraceHandler

UNREAD = frozenset(
    [
        "describe_storage", "describe_tensor", "describe_source", "after_joint_graph", "fx_graph_runnable",
        "aot_forward_graph_fw_metadata", "runtime_wrapper_orchestration",
    ]
)  # fmt: skip
"""Events, and names of artifacts."""


def hook() -> Hook:
    def apply(internal: types.ModuleType) -> Undo:
        logger = internal.trace_log
        if not callable(internal.trace_structured):
            raise TypeError("trace_structured is no function")
        return replace_attribute(internal, "trace_log", _Trace(logger))

    return Hook(
        "records that nobody reads: all are made, which takes longer", "torch._logging._internal", "2.13", apply
    )


class _Trace:
    """PyTorch's trace logger.  It has no handlers while ``trace_structured`` asks for those of such a record."""

    def __init__(self, logger: logging.Logger) -> None:
        object.__setattr__(self, "_logger", logger)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._logger, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._logger, name, value)

    @property
    def handlers(self) -> list[logging.Handler]:
        found: list[logging.Handler] = self._logger.handlers
        asking = sys._getframe(1)
        if asking.f_code.co_name != "trace_structured" or not all(isinstance(one, TraceHandler) for one in found):
            return found
        return [] if _event(asking.f_locals) in UNREAD else found


def _event(given: dict[str, Any]) -> object:
    """The event of a record, or the name of the artifact, by the arguments of ``trace_structured``."""
    event = given.get("name")
    if event != "artifact":
        return event
    try:
        return given["metadata_fn"]().get("name")
    except Exception:  # noqa: BLE001  whoever made the record gets to know it as ever, when PyTorch asks
        return event
