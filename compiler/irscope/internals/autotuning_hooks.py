"""A hook into Inductor's autotuning: what it timed for one operator, and what each choice took."""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Callable
from typing import Any

from irscope.internals.hooks import Hook, Undo, replace_attribute
from irscope.vocabulary.records import dataclass

_LOGGER = "torch._inductor.select_algorithm"
"""It warns of choices that fail (torch 2.13)."""


@dataclass(frozen=True)
class Choice:
    """One way to compute an operator.

    Parameters
    ----------
    kind
        The class of it in Inductor: ``TritonTemplateCaller``, ``ExternKernelCaller``.
    seconds
        What a call took; None if it failed.
    """

    name: str
    kind: str
    description: str
    seconds: float | None


@dataclass(frozen=True)
class Tuned:
    """An operator that was autotuned.

    Parameters
    ----------
    node
        The name of the graph's node.
    stack
        The node's stack trace, as text; empty if it has none.
    inputs
        ``float32[64, 128]`` of each input.
    errors
        What was logged while the choices were timed, in order.
    """

    operator: str
    node: str
    stack: str
    inputs: tuple[str, ...]
    choices: tuple[Choice, ...]
    errors: tuple[str, ...]


def autotuning_hook(receive: Callable[[Tuned], None]) -> Hook:
    """Reports each operator when its choices were timed, or their times were found in the cache.

    The receiver must not raise.
    """

    def apply(select: Any) -> Undo:
        cls = select.AlgorithmSelectorCache
        original = cls.do_autotuning
        if original.__module__ != select.__name__:  # a stand-in for a device that is not here times nothing
            return lambda: None

        @functools.wraps(original)
        def do_autotuning(self: Any, name: str, input_nodes: Any, *args: Any, **kwargs: Any) -> Any:
            heard = _Heard()
            logger = logging.getLogger(_LOGGER)
            logger.addHandler(heard)
            try:
                timings = original(self, name, input_nodes, *args, **kwargs)
            finally:
                logger.removeHandler(heard)
            if timings:
                receive(_tuned(select, name, input_nodes, timings, heard.texts))
            return timings

        return replace_attribute(cls, "do_autotuning", do_autotuning)

    return Hook("what autotuning tried", _LOGGER, "2.13", apply)


class _Heard(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def _tuned(select: Any, name: str, inputs: Any, timings: dict[Any, float], errors: list[str]) -> Tuned:
    node = getattr(select.V.graph, "current_node", None)
    meta = getattr(node, "meta", None) or {}
    # Inductor's times are in milliseconds.
    choices = tuple(
        Choice(one.name, type(one).__name__, str(one.description or ""), took / 1e3 if math.isfinite(took) else None)
        for one, took in timings.items()
    )
    shapes = tuple(_shape(one) for one in inputs)
    stack = str(meta.get("stack_trace") or "")
    return Tuned(name, str(getattr(node, "name", "")), stack, shapes, choices, tuple(errors))


def _shape(node: Any) -> str:
    try:
        return f"{str(node.get_dtype()).removeprefix('torch.')}[{', '.join(map(str, node.get_size()))}]"
    except Exception:  # noqa: BLE001  an input that has no size, as an effect
        return type(node).__name__
