"""How long a GPU took between points of its streams, by CUDA's events, and how long a stream waited for another one.

An event is read once the device has passed it, so nothing waits for the device.  No event is recorded while a CUDA graph
is captured.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from irscope.internals.collective_calls import Call
from irscope.internals.frames import report
from irscope.internals.hooks import Undo, replace_attribute
from irscope.internals.names import PrivateName
from irscope.protocol import CaptureGap

_MOST_OPEN = 1000
_MOST_BACKWARDS = 1000

_WHAT = "how long a GPU waited for collectives of PyTorch's runtime"
_COMPILED_AUTOGRAD = PrivateName(
    _WHAT,
    "torch._dynamo.compiled_autograd",
    "compiled_autograd_enabled",
    "2.11 to 2.14",
)

Told = Callable[[int], None]
"""Receives nanoseconds."""


class DeviceSpans:
    """Times of the current device; empty without a real GPU."""

    def __init__(self, is_real: bool) -> None:
        self._is_real = is_real
        self._lock = threading.Lock()  # autograd's engine has its own thread
        self._open: deque[tuple[Any, Any, Told]] = deque()

    def can_mark(self) -> bool:
        """Whether there is a GPU in use, and it is not recorded for a CUDA graph."""
        cuda = sys.modules["torch"].cuda
        return bool(self._is_real and cuda.is_initialized() and not cuda.is_current_stream_capturing())

    def point(self, stream: Any = None) -> Any:
        """A point of a stream, by default the current one; None if it cannot be marked now."""
        if not self.can_mark():
            return None
        cuda = sys.modules["torch"].cuda
        try:
            event = cuda.Event(enable_timing=True)
            event.record(stream if stream is not None else cuda.current_stream())
        except Exception as error:  # noqa: BLE001  measuring must not break the script
            return self._give_up(error)
        return event

    def _give_up(self, error: Exception) -> None:
        """Nothing is timed from now on."""
        self._is_real = False
        report(CaptureGap(_WHAT, repr(error)))

    def between(self, begin: Any, end: Any, told: Told) -> None:
        """Tells the time between two points once the device has passed the second."""
        if begin is not None and end is not None and len(self._open) < _MOST_OPEN:
            self._open.append((begin, end, told))
        self.settle()

    def settle(self) -> None:
        """Tells what the device has passed, in the order of the points."""
        with self._lock:
            try:
                while self._open and self.can_mark() and self._open[0][1].query():
                    begin, end, told = self._open.popleft()
                    told(int(begin.elapsed_time(end) * 1e6))
            except Exception as error:  # noqa: BLE001  points of two devices, or an error of the script's own kernels
                self._give_up(error)

    @contextmanager
    def waiting(self, calls: Sequence[Call]) -> Iterator[None]:
        """While the current stream begins to wait for calls, and does nothing else."""
        begin = self.point() if calls else None
        yield
        for call in calls:
            self.between(begin, self.point(), call.waits)

    def time_waits(self, event: Any, call: Call) -> None:
        """Times each wait of a stream for this event, which is a call's, from now on."""
        wait = type(event).wait
        try:
            this = weakref.ref(event)

            def timed(stream: Any = None) -> None:
                begin = self.point(stream)
                wait(this(), stream)
                self.between(begin, self.point(stream), call.waits)

            event.wait = timed  # of this object alone: `Stream.wait_event` calls it
        except (AttributeError, TypeError) as error:  # an event of another class
            self._give_up(error)


class BackwardWaits:
    """How long the device waited for DDP's buckets after each backward.

    DDP waits in a callback of autograd's engine.  One that is queued when the backward begins runs before DDP's, and one
    that is queued in that runs after it.
    """

    def __init__(self, spans: DeviceSpans) -> None:
        self._spans = spans
        self.waits: list[tuple[int, int]] = []
        """When each backward ended, in nanoseconds since the epoch, and how many nanoseconds the device waited then."""

    def see(self, module: types.ModuleType, is_wanted: Callable[[], bool]) -> Undo:
        """Wraps a function of ``torch.autograd``, for the backwards that begin from now on while they are wanted."""
        run = module._engine_run_backward
        queue = module.Variable._execution_engine.queue_callback

        @functools.wraps(run)
        def _engine_run_backward(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            if not is_wanted() or len(self.waits) >= _MOST_BACKWARDS or not self._spans.can_mark() or _is_compiled():
                return run(outputs, *args, **kwargs)
            node = next(
                (node for node in (getattr(each, "grad_fn", None) for each in outputs) if node is not None), None
            )
            if node is None:
                return run(outputs, *args, **kwargs)
            hook = node.register_prehook(lambda gradients: queue(before))  # taken back after this backward
            try:
                return run(outputs, *args, **kwargs)
            finally:
                hook.remove()

        def before() -> None:
            begin = self._spans.point()
            queue(lambda: after(begin))

        def after(begin: Any) -> None:
            now = time.time_ns()
            self._spans.between(begin, self._spans.point(), lambda waited: self.waits.append((now, waited)))

        return replace_attribute(module, "_engine_run_backward", _engine_run_backward)


def _is_compiled() -> bool:
    """Whether compiled autograd runs this backward: it would trace the hook."""
    return "torch._dynamo.compiled_autograd" in sys.modules and bool(_COMPILED_AUTOGRAD.find())
