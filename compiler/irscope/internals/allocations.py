"""What PyTorch's profiler notes of memory: each block that is allocated or freed, with the spans and Python calls around it."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterable
from typing import Any

from irscope.internals.hooks import Hook, Undo, replace_attribute

_VERSIONS = "2.11 and 2.13"
_ALLOCATION, _FRAME = "_ExtraFields_Allocation", ("_ExtraFields_PyCall", "_ExtraFields_PyCCall")
_MOST_EVENTS, _MOST_NAME = 200_000, 500


class MemoryProfiler:
    """PyTorch's profiler, with memory and Python calls; it gives way to a profiler that the script starts."""

    def __init__(self) -> None:
        self._profiler: Any = None

    def hook(self) -> Hook:
        """What hears that the script starts a profiler: two cannot run at once."""

        def apply(module: Any) -> Undo:
            prepare = module.profile._prepare_trace  # `torch.profiler.profile` goes through it, too

            def prepared(profiler: Any) -> Any:
                if self._profiler is not None and profiler is not self._profiler.profiler:
                    self.give_up()
                return prepare(profiler)

            return replace_attribute(module.profile, "_prepare_trace", prepared)

        return Hook(
            "the memory of a step, where the script profiles itself", "torch.autograd.profiler", _VERSIONS, apply
        )

    @property
    def is_running(self) -> bool:
        """Whether it has been started and not been stopped."""
        return self._profiler is not None

    def start(self) -> bool:
        """Begins, unless another profiler runs; returns whether it did."""
        torch: Any = sys.modules["torch"]
        if torch.autograd._profiler_enabled():
            return False
        kinds = torch.profiler.ProfilerActivity
        activities = [kinds.CPU, *([kinds.CUDA] if torch.cuda.is_initialized() else [])]
        self._profiler = torch.profiler.profile(
            activities=activities, profile_memory=True, with_stack=True, acc_events=True
        )
        self._profiler.start()
        return True

    def give_up(self) -> None:
        """Ends, and forgets what was noted."""
        profiler, self._profiler = self._profiler, None
        if profiler is not None:
            profiler.stop()

    def stop(self) -> dict[str, Any]:
        """Ends, and gives what was noted; see `facts_of`.  Raises AttributeError if it does not fit this torch."""
        profiler, self._profiler = self._profiler, None
        profiler.stop()
        return facts_of(profiler.profiler.kineto_results.experimental_event_tree())


def facts_of(tree: Iterable[Any]) -> dict[str, Any]:
    """The facts in a tree of events: ``spans``, each ``[index of the span around it or -1, name, file, line, sequence number]``, with
    a file if it is a Python call, and then the line of the caller; and ``blocks``, each ``[nanoseconds, address, bytes,
    bytes in use, bytes reserved, is on a device, index of its span]``, in their order, of which those that are freed have
    negative bytes.
    """
    spans: list[list[Any]] = []
    known: dict[tuple[Any, ...], int] = {}
    blocks: list[list[Any]] = []
    todo = [(event, -1) for event in tree]
    while todo and len(blocks) < _MOST_EVENTS:
        event, around = todo.pop()
        fields = event.typed[1]
        kind = type(fields).__name__
        if kind == _ALLOCATION:
            is_device = "cpu" not in str(fields.device)
            sizes = fields.alloc_size, fields.total_allocated, fields.total_reserved
            blocks.append([event.start_time_ns, fields.ptr, *sizes, is_device, around])
            continue
        if kind in _FRAME:
            caller = fields.caller
            span = (around, _cut(caller.function_name), _whole_path(caller.file_name), caller.line_number, None)
        else:
            span = (around, _cut(event.name), "", 0, getattr(fields, "sequence_number", None))
        if (inner := known.get(span)) is None:
            inner = known[span] = len(spans)
            spans.append(list(span))
        todo += [(child, inner) for child in event.children]
    blocks.sort(key=lambda block: block[0])
    return {"spans": spans, "blocks": blocks}


@functools.lru_cache(maxsize=4096)
def _whole_path(file: str) -> str:
    """The profiler leaves out the folder from which a module was imported."""
    if os.path.isabs(file) or file.startswith("<"):
        return file
    paths = (os.path.join(folder, file) for folder in sys.path)
    return next((path for path in paths if os.path.isfile(path)), file)


def _cut(name: str) -> str:
    return name[:_MOST_NAME]
