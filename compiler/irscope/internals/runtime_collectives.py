"""Collectives that no graph has, since PyTorch's runtime issues them: FSDP2's, DDP's and a pipeline's.

FSDP2 gathers the parameters of a module before its forward and its backward, and scatters the gradients after that.  A
pipeline schedule sends activations and gradients.  Both are seen where they are issued, and where the rank waits for them.
DDP's reducer is C++: its all-reduces are read from the flight recorder.  On a GPU the times are the device's
(`irscope.internals.device_spans`), since the host runs ahead of it; else the host's.
"""

from __future__ import annotations

import functools
import threading
import time
import types
from collections.abc import Callable, Sequence
from typing import Any

from irscope.internals.collective_calls import Call, Calls, Row, take_durations
from irscope.internals.ddp_buckets import ddp_rows
from irscope.internals.device_spans import BackwardWaits, DeviceSpans
from irscope.internals.hooks import Hook, Undo, replace_attribute, undo_all
from irscope.internals.stacks import place_in

_FSDP = "torch.distributed.fsdp._fully_shard._fsdp_param_group"
_STAGE, _SCHEDULES = "torch.distributed.pipelining.stage", "torch.distributed.pipelining.schedules"
_DDP = "torch.nn.parallel.distributed"
_MOST_ROWS = 500
_MOST_OPEN = 1000


class RuntimeCollectives:
    """Counts what is issued.

    Args:
        is_fake: Under the fake group nothing takes time, so what is beside a collective is not known.
    """

    def __init__(self, is_fake: bool) -> None:
        self._is_fake = is_fake
        self._rows: dict[tuple[Any, ...], Calls] = {}
        self._open: dict[object, tuple[Calls, int, Call | None]] = {}
        self._stages: dict[int, tuple[Any, str]] = {}
        self._wrapped: list[list[tuple[str, int]]] = []
        self._lock = threading.Lock()
        self._spans = DeviceSpans(not is_fake)
        self._backwards = BackwardWaits(self._spans)

    def hooks(self) -> list[Hook]:
        """What sees them."""
        what = "collectives that the runtime issues"
        return [
            Hook(f"FSDP's {what}", _FSDP, "2.13 to 2.14", self._see_fsdp),
            Hook(f"a pipeline's {what}", _STAGE, "2.13 to 2.14", self._see_stages),
            Hook(f"a pipeline's {what}", _SCHEDULES, "2.13 to 2.14", self._see_schedules),
            Hook("which modules DDP's buckets belong to", _DDP, "2.11 and 2.13", self._see_ddp),
            Hook("how long a GPU waited for DDP's buckets", "torch.autograd", "2.11 to 2.14", self._see_backwards),
        ]

    def rows(
        self, recorded: Sequence[dict[str, Any]] = (), at: Callable[[int], tuple[str, int]] = lambda time: ("", 0)
    ) -> list[Row]:
        """All so far, in the order of their first calls.

        Args:
            recorded: The entries of the flight recorder, which has DDP's.
            at: As for `irscope.internals.flight_recorder.arrivals`.
        """
        self._spans.settle()
        with self._lock:
            take_durations((call for calls in self._rows.values() for call in calls.on_device), recorded)
            found = [[*key, *calls.row()] for key, calls in self._rows.items()]
        of_ddp = ddp_rows(recorded, self._wrapped, at, self._backwards.waits) if self._wrapped else ()
        return [*found, *of_ddp][:_MOST_ROWS]

    def _issued(
        self, issuer: str, operation: str, module: str, peer: int, size: int, on_device: Call | None, open_as: object
    ) -> None:
        """One call; ``open_as`` names it until the rank waits for it, None if the call itself has waited."""
        key = issuer, operation, module, peer, size, *_user_place()
        with self._lock:
            calls = self._rows.setdefault(key, Calls())
            calls.calls += 1
            if self._is_fake:
                calls.is_not_known()
                return
            if on_device is not None:
                calls.on_device.append(on_device)
            if open_as is not None and len(self._open) < _MOST_OPEN:
                self._open[open_as] = calls, time.perf_counter_ns(), on_device

    def _waits(self, open_as: object) -> Call | None:
        """The rank waits for a call now.  Return the call if it is on a device."""
        with self._lock:
            calls, begun, on_device = self._open.pop(open_as, (None, 0, None))
        if calls is not None and on_device is None and (passed := time.perf_counter_ns() - begun) > _OWN_NANOSECONDS:
            # A forward that gathers its own parameters waits at once: what is between is Python's own time.
            calls.went_on(passed)
        return on_device

    # --- FSDP2 --------------------------------------------------------------------------------------------------------

    def _see_fsdp(self, module: types.ModuleType) -> Undo:
        gather, reduce, group = module.foreach_all_gather, module.foreach_reduce, module.FSDPParamGroup
        wait = group.wait_for_unshard

        @functools.wraps(gather)
        def foreach_all_gather(fsdp_params: Any, *args: Any, **kwargs: Any) -> Any:
            begin = time.time_ns()
            result = gather(fsdp_params, *args, **kwargs)
            if result is not None:
                output, name, work = result.all_gather_output, _module_of(fsdp_params), result.all_gather_work
                size = output.numel() * output.element_size() // max(1, args[0].size())
                # What waits for the work of an asynchronous one is not seen on a device: its times are not known.
                call = self._on_device(output, 0 if work else begin, [] if work else [result.all_gather_event])
                self._issued("FSDP2", "all_gather", name, -1, size, call, ("gather", name) if work else None)
            return result

        @functools.wraps(reduce)
        def foreach_reduce(fsdp_params: Any, unsharded_grads: Any, *args: Any, **kwargs: Any) -> Any:
            reduced_as = kwargs.get("reduce_dtype", args[4] if len(args) > 4 else None)
            size = sum(grad.numel() * (reduced_as or grad.dtype).itemsize for grad in unsharded_grads)
            begin = time.time_ns()
            result = reduce(fsdp_params, unsharded_grads, *args, **kwargs)
            call = self._on_device(result[0], begin, [each for each in result if hasattr(each, "elapsed_time")])
            self._issued("FSDP2", "reduce_scatter", _module_of(fsdp_params), -1, size, call, None)
            return result

        @functools.wraps(wait)
        def wait_for_unshard(group: Any, *args: Any, **kwargs: Any) -> Any:
            self._waits(("gather", _module_of(group.fsdp_params)))
            return wait(group, *args, **kwargs)

        return undo_all([
            replace_attribute(module, "foreach_all_gather", foreach_all_gather),
            replace_attribute(module, "foreach_reduce", foreach_reduce),
            replace_attribute(group, "wait_for_unshard", wait_for_unshard),
        ])  # fmt: skip

    def _on_device(self, result: Any, begin: int, events: Sequence[Any]) -> Call | None:
        """A call of FSDP's that was issued since then (0: its times are not known), and whose events are waited for; None on
        a CPU."""
        if self._is_fake or result.device.type == "cpu":
            return None
        call = Call(begin=begin, end=begin and time.time_ns())
        for event in events:
            if event is not None:
                self._spans.time_waits(event, call)
        return call

    # --- pipelines ----------------------------------------------------------------------------------------------------

    def _see_stages(self, module: types.ModuleType) -> Undo:
        base, undo = module._PipelineStageBase, []
        for name, part in _OPERATIONS.items():
            undo.append(replace_attribute(base, name, self._of_stage(getattr(base, name), part)))
        return undo_all(undo)

    def _of_stage(self, function: Callable[..., Any], part: str) -> Callable[..., Any]:
        @functools.wraps(function)
        def operations(stage: Any, *args: Any, **kwargs: Any) -> Any:
            made = function(stage, *args, **kwargs)
            title = f"stage {stage.stage_index} ({type(stage.submod).__name__}), {part}"
            if len(self._stages) < _MOST_OPEN:
                self._stages.update(
                    {id(each): (each, title) for each in made}
                )  # with it, so that the id is not used again
            return made

        return operations

    def _see_schedules(self, module: types.ModuleType) -> Undo:
        batch, wait = module._batch_p2p, module._wait_batch_p2p

        @functools.wraps(batch)
        def _batch_p2p(p2p_ops: Any, *args: Any, **kwargs: Any) -> Any:
            begin = time.time_ns()
            works = batch(p2p_ops, *args, **kwargs)
            end = time.time_ns()
            for at, each in enumerate(p2p_ops):
                _, title = self._stages.pop(id(each), (None, ""))
                size, operation = each.tensor.numel() * each.tensor.element_size(), each.op.__name__.removeprefix("i")
                work = works[at] if at < len(works) else None  # several may be one
                call = None if each.tensor.device.type == "cpu" else Call(begin=begin, end=end)
                open_as = None if work is None else id(work)
                self._issued("pipeline", operation, title, int(each.peer), size, call, open_as)
            return works

        @functools.wraps(wait)
        def _wait_batch_p2p(work: Any, *args: Any, **kwargs: Any) -> Any:
            calls = [call for call in (self._waits(id(each)) for each in work) if call is not None]
            with self._spans.waiting(calls):
                return wait(work, *args, **kwargs)

        return undo_all([
            replace_attribute(module, "_batch_p2p", _batch_p2p), replace_attribute(module, "_wait_batch_p2p", _wait_batch_p2p),
        ])  # fmt: skip

    # --- DDP ----------------------------------------------------------------------------------------------------------

    def _see_ddp(self, module: types.ModuleType) -> Undo:
        begin = module.DistributedDataParallel.__init__

        @functools.wraps(begin)
        def __init__(ddp: Any, *args: Any, **kwargs: Any) -> None:
            begin(ddp, *args, **kwargs)
            self._wrapped.append(
                [(name, each.numel()) for name, each in ddp.module.named_parameters() if each.requires_grad]
            )

        return replace_attribute(module.DistributedDataParallel, "__init__", __init__)

    def _see_backwards(self, module: types.ModuleType) -> Undo:
        return self._backwards.see(module, lambda: bool(self._wrapped))


_OWN_NANOSECONDS = 200_000
"""What Python takes between two calls of the runtime; less is not a computation beside a collective."""
_OPERATIONS = {
    "get_fwd_send_ops": "forward", "get_fwd_recv_ops": "forward",
    "get_bwd_send_ops": "backward", "get_bwd_recv_ops": "backward",
}  # fmt: skip
"""Methods of a stage that make its sends and receives."""


def _module_of(parameters: Sequence[Any]) -> str:
    """The module of FSDP's parameters: what their names have in common."""
    names = [str(getattr(each, "_param_fqn", "") or "").split(".")[:-1] for each in parameters]
    common = names[0] if names else []
    for parts in names[1:]:
        same = 0
        while same < min(len(common), len(parts)) and common[same] == parts[same]:
            same += 1
        common = common[:same]
    return ".".join(common) or "the model"


def _user_place() -> tuple[str, int]:
    """The user's line that led here; for a thread of autograd's the line that the main thread is in."""
    mine = place_in(threading.get_ident())
    return mine if mine[0] else place_in(threading.main_thread().ident or 0)
