"""Collectives that no graph has, since PyTorch's runtime issues them: FSDP2's, DDP's and a pipeline's.

FSDP2 gathers the parameters of a module before its forward and its backward, and scatters the gradients after that.  A
pipeline schedule sends activations and gradients.  Both are seen where they are issued, and where the rank waits for them.
DDP's reducer is C++: its all-reduces are read from the flight recorder.
"""

from __future__ import annotations

import functools
import math
import threading
import time
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from irscope.internals.flight_recorder import place_of
from irscope.internals.hooks import Hook, Undo, replace_attribute, undo_all
from irscope.internals.stacks import place_in

_FSDP = "torch.distributed.fsdp._fully_shard._fsdp_param_group"
_STAGE, _SCHEDULES = "torch.distributed.pipelining.stage", "torch.distributed.pipelining.schedules"
_DDP = "torch.nn.parallel.distributed"
_DDP_FILE, _ENGINE = "/torch/nn/parallel/distributed.py", "_engine_run_backward"
_BYTES = {
    "Float": 4,
    "Double": 8,
    "Half": 2,
    "BFloat16": 2,
    "Long": 8,
    "Int": 4,
    "Short": 2,
    "Char": 1,
    "Byte": 1,
    "Bool": 1,
}
"""By the flight recorder's names of types; others are not known."""
_MOST_ROWS = 500
_MOST_OPEN = 1000
_MOST_MODULES = 2

Row = list[Any]
"""``[issuer, operation, module, peer, bytes, file, line, calls, calls beside, nanoseconds beside]``: bytes that the rank
gives into one call, -1 if they are not known; calls after which the rank went on, and for how long until it waited, both -1
if that is not known."""


class RuntimeCollectives:
    """Counts what is issued.

    Parameters
    ----------
    is_fake
        Under the fake group nothing takes time, so what is beside a collective is not known.
    """

    def __init__(self, is_fake: bool) -> None:
        self._is_fake = is_fake
        self._rows: dict[tuple[Any, ...], list[int]] = {}
        self._open: dict[object, tuple[list[int], int]] = {}
        self._stages: dict[int, tuple[Any, str]] = {}
        self._wrapped: list[list[tuple[str, int]]] = []
        self._lock = threading.Lock()

    def hooks(self) -> list[Hook]:
        """What sees them."""
        what = "collectives that the runtime issues"
        return [
            Hook(f"FSDP's {what}", _FSDP, "2.13 to 2.14", self._see_fsdp),
            Hook(f"a pipeline's {what}", _STAGE, "2.13 to 2.14", self._see_stages),
            Hook(f"a pipeline's {what}", _SCHEDULES, "2.13 to 2.14", self._see_schedules),
            Hook("which modules DDP's buckets belong to", _DDP, "2.11 and 2.13", self._see_ddp),
        ]

    def rows(
        self, recorded: Sequence[dict[str, Any]] = (), at: Callable[[int], tuple[str, int]] = lambda time: ("", 0)
    ) -> list[Row]:
        """All so far, in the order of their first calls.

        Parameters
        ----------
        recorded
            The entries of the flight recorder, which has DDP's.
        at
            As for `irscope.internals.flight_recorder.arrivals`.
        """
        with self._lock:
            found = [[*key, *counts] for key, counts in self._rows.items()]
        return [*found, *(ddp_rows(recorded, self._wrapped, at) if self._wrapped else ())][:_MOST_ROWS]

    def _issued(self, issuer: str, operation: str, module: str, peer: int, size: int, open_as: object) -> None:
        """One call; ``open_as`` names it until the rank waits for it, None if the call itself has waited."""
        key = issuer, operation, module, peer, size, *_user_place()
        with self._lock:
            counts = self._rows.setdefault(key, [0, -1, -1] if self._is_fake else [0, 0, 0])
            counts[0] += 1
            if open_as is not None and not self._is_fake and len(self._open) < _MOST_OPEN:
                self._open[open_as] = counts, time.perf_counter_ns()

    def _waits(self, open_as: object, is_beside: Callable[[int], bool] = lambda passed: True) -> None:
        with self._lock:
            if (opened := self._open.pop(open_as, None)) is not None:
                counts, begun = opened
                if is_beside(passed := time.perf_counter_ns() - begun):
                    counts[1] += 1
                    counts[2] += passed

    # --- FSDP2 --------------------------------------------------------------------------------------------------------

    def _see_fsdp(self, module: types.ModuleType) -> Undo:
        gather, reduce, group = module.foreach_all_gather, module.foreach_reduce, module.FSDPParamGroup
        wait, finalize = group.wait_for_unshard, group.finalize_backward

        @functools.wraps(gather)
        def foreach_all_gather(fsdp_params: Any, *args: Any, **kwargs: Any) -> Any:
            result = gather(fsdp_params, *args, **kwargs)
            if result is not None:
                output, name = result.all_gather_output, _module_of(fsdp_params)
                world = max(1, args[0].size())
                is_beside = output.device.type != "cpu" or result.all_gather_work is not None
                size = output.numel() * output.element_size() // world
                self._issued("FSDP2", "all_gather", name, -1, size, ("gather", name) if is_beside else None)
            return result

        @functools.wraps(reduce)
        def foreach_reduce(fsdp_params: Any, unsharded_grads: Any, *args: Any, **kwargs: Any) -> Any:
            reduced_as = kwargs.get("reduce_dtype", args[4] if len(args) > 4 else None)
            size = sum(grad.numel() * (reduced_as or grad.dtype).itemsize for grad in unsharded_grads)
            is_beside = any(grad.device.type != "cpu" for grad in unsharded_grads)
            result, name = reduce(fsdp_params, unsharded_grads, *args, **kwargs), _module_of(fsdp_params)
            self._issued("FSDP2", "reduce_scatter", name, -1, size, ("reduce", name) if is_beside else None)
            return result

        @functools.wraps(wait)
        def wait_for_unshard(group: Any, *args: Any, **kwargs: Any) -> Any:
            # A forward that gathers its own parameters waits at once: what is between is Python's own time.
            self._waits(("gather", _module_of(group.fsdp_params)), lambda passed: passed > _OWN_NANOSECONDS)
            return wait(group, *args, **kwargs)

        @functools.wraps(finalize)
        def finalize_backward(group: Any, *args: Any, **kwargs: Any) -> Any:
            self._waits(("reduce", _module_of(group.fsdp_params)), lambda passed: passed > _OWN_NANOSECONDS)
            return finalize(group, *args, **kwargs)

        return undo_all([
            replace_attribute(module, "foreach_all_gather", foreach_all_gather),
            replace_attribute(module, "foreach_reduce", foreach_reduce),
            replace_attribute(group, "wait_for_unshard", wait_for_unshard),
            replace_attribute(group, "finalize_backward", finalize_backward),
        ])  # fmt: skip

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
            works = batch(p2p_ops, *args, **kwargs)
            for at, each in enumerate(p2p_ops):
                _, title = self._stages.pop(id(each), (None, ""))
                size, operation = each.tensor.numel() * each.tensor.element_size(), each.op.__name__.removeprefix("i")
                work = works[at] if at < len(works) else None  # several may be one
                self._issued("pipeline", operation, title, int(each.peer), size, None if work is None else id(work))
            return works

        @functools.wraps(wait)
        def _wait_batch_p2p(work: Any, *args: Any, **kwargs: Any) -> Any:
            for each in work:
                self._waits(id(each), lambda passed: passed > _OWN_NANOSECONDS)
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


_OWN_NANOSECONDS = 200_000
"""What Python takes between two calls of the runtime; less is not a computation beside a collective."""
_OPERATIONS = {
    "get_fwd_send_ops": "forward", "get_fwd_recv_ops": "forward",
    "get_bwd_send_ops": "backward", "get_bwd_recv_ops": "backward",
}  # fmt: skip
"""Methods of a stage that make its sends and receives."""


def ddp_rows(
    recorded: Sequence[dict[str, Any]],
    wrapped: Sequence[Sequence[tuple[str, int]]],
    at: Callable[[int], tuple[str, int]] = lambda time: ("", 0),
) -> list[Row]:
    """DDP's collectives, from the entries of the flight recorder.

    Those of a bucket are all-reduces that no Python function has called.  A bucket runs beside the rest of the backward:
    the rank goes on with it at least until the last bucket begins.

    Parameters
    ----------
    wrapped
        The parameters of each model in DDP, with their numbers of elements.
    at
        As for `irscope.internals.flight_recorder.arrivals`.
    """
    rows: dict[tuple[Any, ...], list[int]] = {}
    backward: list[tuple[list[int], int, int]] = []
    totals = {sum(size for _, size in parameters): list(parameters) for parameters in wrapped}
    for entry in filter(_is_of_ddp, recorded):
        frames, time = entry.get("frames") or (), int(entry["time_created_ns"])
        elements = sum(math.prod(map(int, sizes)) for sizes in entry.get("input_sizes") or ())
        size = elements * _BYTES.get(str(next(iter(entry.get("input_dtypes") or ()), "")), 0) or -1
        done = sum(number for _, number, _ in backward)
        is_bucket = _is_bucket(entry)
        module = _bucket_modules(totals, done, elements) if is_bucket else ""
        key = "DDP", _operation(entry), module, -1, size, *(place_of(frames) if place_of(frames)[0] else at(time))
        counts = rows.setdefault(key, [0, 0, 0])
        counts[0] += 1
        if is_bucket:
            backward.append((counts, elements, time))
            if done + elements in totals:
                _close(backward)
                backward = []
    return [[*key, *counts] for key, counts in rows.items()]


def _operation(entry: dict[str, Any]) -> str:
    return str(entry.get("profiling_name", "")).partition(":")[2]


def _is_bucket(entry: dict[str, Any]) -> bool:
    """Whether autograd's engine itself was the innermost Python function; its own thread has no Python function."""
    frames = entry.get("frames") or ()
    return _operation(entry) == "all_reduce" and (not frames or str(frames[0].get("name")) == _ENGINE)


def _is_of_ddp(entry: dict[str, Any]) -> bool:
    return _is_bucket(entry) or any(_DDP_FILE in str(frame.get("filename", "")) for frame in entry.get("frames") or ())


def _close(backward: Sequence[tuple[list[int], int, int]]) -> None:
    """The end of a backward: all buckets but the last ran beside what came before that."""
    *before, (_, _, end) = backward
    for counts, _, begun in before:
        counts[1] += 1
        counts[2] += max(0, end - begun)


def _bucket_modules(totals: dict[int, list[tuple[str, int]]], done: int, elements: int) -> str:
    """The modules of a bucket, if buckets are in the reversed order of the parameters; empty if they are not."""
    for parameters in totals.values():
        passed, mine = 0, list[str]()
        for name, size in reversed(parameters):
            if done <= passed and passed + size <= done + elements:
                mine.append(name)
            passed += size
        if mine and sum(size for name, size in parameters if name in set(mine)) == elements:
            return named_modules(mine)
    return ""


def named_modules(parameters: Iterable[str]) -> str:
    """The modules that parameters belong to: ``layers.1.down``, or ``layers.1.down, layers.1.up, …``."""
    found = list(dict.fromkeys(name.rpartition(".")[0] or "the model" for name in parameters))
    return ", ".join(found[:_MOST_MODULES]) + (", …" if len(found) > _MOST_MODULES else "")


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
