"""Times of the runtime's collectives on a device: from the flight recorder's durations, and waits for events."""

from __future__ import annotations

import types
from typing import Any

import pytest
import torch
from irscope.comparing.ranks.runtime import beside_of_runtime, runtime_of
from irscope.internals.collective_calls import Call, Calls, take_durations
from irscope.internals.ddp_buckets import ddp_rows
from irscope.internals.device_spans import BackwardWaits, DeviceSpans
from irscope.internals.frames import report_to
from irscope.protocol import CaptureGap

MILLISECOND = 1_000_000


def recorded(created: int, milliseconds: float | None, **others: Any) -> dict[str, Any]:
    return {"time_created_ns": created, "duration_ms": milliseconds, **others}


def words(calls: Calls) -> str:
    (found,) = runtime_of([["FSDP2", "all_gather", "0", -1, 8, "/train.py", 3, *calls.row()]])
    return beside_of_runtime(found)


def test_a_call_has_the_durations_of_what_was_recorded_while_it_was_issued() -> None:
    calls, batch, none = Call(begin=100, end=200), Call(begin=300, end=400), Call()
    sends = [recorded(301, 2.0, is_p2p=True), recorded(302, 2.5, is_p2p=True)]
    take_durations(
        [calls, batch, none], [recorded(250, 9.0), recorded(120, 1.5), recorded(150, 0.5), recorded(130, None), *sends]
    )
    assert [call.took / MILLISECOND for call in (calls, batch, none)] == [2.0, 2.5, 0.0]


def test_what_is_beside_a_collective_of_a_device_in_words() -> None:
    calls = Calls()
    calls.calls = 4
    assert words(calls) == "nothing"
    calls.on_device.append(Call())
    assert words(calls) == "not known", "the recorder did not time it"
    calls.on_device.extend([Call(90 * MILLISECOND, 0), Call(3 * MILLISECOND, 0), Call(3 * MILLISECOND, MILLISECOND)])
    assert words(calls) == "2 of 4 calls, 2.5 ms of 3 ms each", "the first is that of the start"
    calls.on_device.append(Call(3 * MILLISECOND, 50 * MILLISECOND))
    assert calls.on_device[-1].beside == 0
    unseen = Calls()
    unseen.calls = 1
    unseen.on_device.append(Call(3 * MILLISECOND))
    assert words(unseen) == "not known", "no wait for it was seen"


@pytest.mark.parametrize(("waited", "beside"), [(0, [4, 4]), (3, [4, 1]), (6, [2, 0]), (90, [0, 0])])
def test_what_a_device_waits_after_a_backward_is_the_end_of_its_buckets(waited: int, beside: list[int]) -> None:
    buckets = [
        recorded(time, 4.0, profiling_name="nccl:all_reduce", input_sizes=[[size]], input_dtypes=["Float"])
        for time, size in ((10, 6), (20, 4))
    ]
    rows = ddp_rows(buckets, [[("first.weight", 4), ("second.weight", 6)]], waits=[(5, 77), (30, waited * MILLISECOND)])
    assert [row[2] for row in rows] == ["second", "first"]
    assert [row[9] // MILLISECOND for row in rows] == beside
    assert [row[10] // MILLISECOND for row in rows] == [4, 4]


class Event:
    """A point of a stream of a device."""

    def __init__(self, at: int) -> None:
        self.at, self.is_passed = at, False

    def query(self) -> bool:
        return self.is_passed

    def elapsed_time(self, end: Event) -> float:
        return (end.at - self.at) / MILLISECOND

    def wait(self, stream: object = None) -> None:
        Spans.clock += 7 * MILLISECOND


class Spans(DeviceSpans):
    """Of a device that is not there: its time is a number."""

    clock = 0

    def __init__(self) -> None:
        super().__init__(True)
        self.points: list[Event] = []

    def can_mark(self) -> bool:
        return True

    def point(self, stream: Any = None) -> Event:
        self.points.append(Event(Spans.clock))
        return self.points[-1]


def passed(spans: Spans) -> None:
    for point in spans.points:
        point.is_passed = True
    spans.settle()


def test_a_wait_for_an_event_is_told_when_the_device_has_passed_it() -> None:
    spans, event, call = Spans(), Event(0), Call(10 * MILLISECOND)
    spans.time_waits(event, call)
    event.wait()
    assert call.beside == 10 * MILLISECOND, "nothing waits for the device"
    passed(spans)
    assert call.beside == 3 * MILLISECOND
    with spans.waiting([call]):
        Spans.clock += 2 * MILLISECOND
    passed(spans)
    assert call.beside == MILLISECOND


def test_the_wait_after_a_backward_is_what_other_callbacks_of_its_end_do() -> None:
    """As in autograd's engine: callbacks run in the order in which they were queued, also those that one queues."""
    queued: list[Any] = []

    class Node:
        def register_prehook(self, hook: Any) -> Any:
            self.hook: Any = hook
            return types.SimpleNamespace(remove=lambda: setattr(self, "hook", None))

    def run(outputs: list[Any]) -> str:
        outputs[0].grad_fn.hook(())
        queued.append(lambda: setattr(Spans, "clock", Spans.clock + 5 * MILLISECOND))  # DDP's
        while queued:
            queued.pop(0)()
        return "gradients"

    engine = types.SimpleNamespace(queue_callback=queued.append)
    module: Any = types.SimpleNamespace(
        _engine_run_backward=run, Variable=types.SimpleNamespace(_execution_engine=engine)
    )
    spans, is_wanted = Spans(), True
    waits = BackwardWaits(spans)
    undo = waits.see(module, lambda: is_wanted)
    node = Node()
    assert module._engine_run_backward([types.SimpleNamespace(grad_fn=node)]) == "gradients" and node.hook is None
    passed(spans)
    assert [waited for _, waited in waits.waits] == [5 * MILLISECOND]
    undo()
    assert module._engine_run_backward is run


def test_a_stream_waits_for_an_event_by_the_event_s_own_method() -> None:
    """That is where waits are seen: a change of PyTorch's makes this test fail."""
    seen: list[object] = []
    event, stream = types.SimpleNamespace(wait=seen.append), object()
    torch.cuda.Stream.wait_event(stream, event)
    assert seen == [stream]


class Sealed:
    """An event whose method cannot be replaced."""

    __slots__ = ()

    def wait(self, stream: object = None) -> None: ...


def test_what_cannot_be_measured_is_a_gap_and_no_error_of_the_script() -> None:
    gaps: list[CaptureGap] = []
    undo = report_to(gaps.append)
    try:
        spans, told = Spans(), list[int]()
        begin, end = spans.point(), spans.point()
        end.is_passed, end.at = True, 1 << 1024  # no number of milliseconds, as of two devices
        spans.between(begin, end, told.append)
        Spans().time_waits(Sealed(), Call())
    finally:
        undo()
    assert (
        told == [] and [gap.what for gap in gaps] == ["how long a GPU waited for collectives of PyTorch's runtime"] * 2
    )
    assert not spans._is_real, "it is not tried again"
