"""What PyTorch logs of its CUDA graphs: that one is recorded, and why one is recorded again."""

from __future__ import annotations

import re
from collections.abc import Callable

from irscope.internals.hooks import Hook, Undo

LOGGER = "torch._inductor.cudagraph_trees.__cudagraphs"
"""The logger of its debug messages.  Only with that level the reason is computed at all."""
_AGAIN = re.compile(
    r"\[(?P<compile>[^\]]*)\] Re-recording function=(?P<function>[^,]*)(?:, mode=\w+)?, reason=(?P<why>.*)", re.DOTALL
)
_RECORDING = re.compile(r"\[[^\]]*\] Recording function=")


def cudagraph_hook(attach: Callable[[], Undo]) -> Hook:
    """Attaches to the logger once PyTorch has it."""
    return Hook(
        "why CUDA graphs are recorded again", "torch._inductor.cudagraph_trees", "2.11, 2.13", lambda _: attach()
    )


def is_recording(text: str) -> bool:
    """Whether a message says that a CUDA graph is being recorded."""
    return _RECORDING.match(text) is not None


def recorded_again(text: str) -> tuple[str, str, str] | None:
    """The compile, the function and the reason of a message about a graph that is recorded again; None for others."""
    match = _AGAIN.match(text)
    return (match["compile"], match["function"], match["why"]) if match else None
