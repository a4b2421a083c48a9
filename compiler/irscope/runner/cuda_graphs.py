"""What a profiled run did with CUDA graphs before it was warm, and the memory that they hold."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Any

from irscope.events.listening import listen
from irscope.internals.cudagraph_logs import LOGGER, cudagraph_hook, is_recording, recorded_again
from irscope.internals.hooks import Hook
from irscope.vocabulary.visible import bounded

_MOST = 100
"""Reasons that are kept."""


class GraphWatch(logging.Handler):
    """Counts recordings and keeps the reasons of those that happen again.  It listens until `stop`."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.recordings = 0
        self._again: Counter[tuple[str, str, str]] = Counter()
        self._undo: Callable[[], None] | None = None

    def hook(self) -> Hook:
        """Attaches it."""
        return cudagraph_hook(self._attach)

    def _attach(self) -> Callable[[], None]:
        self._undo = listen(self, LOGGER)
        return self.stop

    def emit(self, record: logging.LogRecord) -> None:
        """Takes in a message of PyTorch's."""
        text = record.getMessage()
        if is_recording(text):
            self.recordings += 1
        elif (again := recorded_again(text)) is not None and (again in self._again or len(self._again) < _MOST):
            self._again[again] += 1

    def stop(self) -> None:
        """Listens no more: messages cost time, which must not be measured."""
        undo, self._undo = self._undo, None
        if undo is not None:
            undo()

    def facts(self, torch: Any) -> dict[str, Any]:
        """As the driver reads them; of the pools what they hold now."""
        return {
            "recordings": self.recordings,
            "again": [
                {"compile": compile, "function": bounded(function, 200), "why": bounded(why), "count": count}
                for (compile, function, why), count in self._again.items()
            ],
            "pools": _pools(torch),
        }


def _pools(torch: Any) -> list[dict[str, Any]]:
    """The private memory pools of the process, which are those of CUDA graphs, the largest first."""
    if torch is None or not torch.cuda.is_initialized():
        return []
    sums: dict[str, list[int]] = {}
    for segment in torch.cuda.memory_snapshot():
        pool = segment.get("segment_pool_id") or (0, 0)
        if tuple(pool) != (0, 0):
            total = sums.setdefault(".".join(map(str, pool)), [0, 0])
            total[0] += segment.get("total_size", 0)
            total[1] += segment.get("allocated_size", 0)
    ordered = sorted(sums.items(), key=lambda each: -each[1][0])[:_MOST]
    return [{"pool": pool, "bytes": held, "used_bytes": used} for pool, (held, used) in ordered]
