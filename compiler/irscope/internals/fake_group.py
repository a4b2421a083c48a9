"""One rank of a job of many, in one process: PyTorch's fake process group in place of the one that the script names.

The fake group communicates with nobody: collectives return at once, with wrong numbers.  Shapes, graphs and bytes are
those of the real job, which is all that a compile depends on.
"""

from __future__ import annotations

import functools
import importlib
import sys
import types
from collections.abc import Callable
from typing import Any

from irscope.internals.hooks import Hook, Undo, replace_attribute, undo_all
from irscope.internals.names import PrivateName

_WHAT = "the ranks of the job: the script runs with the process group that it names"
_VERSIONS = "2.13"
_HOLDERS = ("torch.distributed.distributed_c10d", "torch.distributed", "torch.distributed.device_mesh")
"""Where `init_process_group` is looked up.  The other two copy it from the first when they are imported."""
_FAKE = PrivateName(_WHAT, "torch.testing._internal.distributed.fake_pg", "FakeStore", _VERSIONS)


def hooks_for(world: int, rank: int, local_rank: int) -> list[Hook]:
    """The hooks of a run that is this rank of a job with so many."""

    def group(module: types.ModuleType) -> Undo:
        original = module.init_process_group
        fake = _fake_init(original, world, rank)
        holders = [sys.modules.get(name) for name in _HOLDERS]
        return undo_all(
            [
                replace_attribute(holder, "init_process_group", fake)
                for holder in holders
                if getattr(holder, "init_process_group", None) is original
            ]
        )

    def spawned(module: types.ModuleType) -> Undo:
        own = _spawn_one(world, rank, local_rank)
        holders = [module, sys.modules.get("torch.multiprocessing")]
        return undo_all([replace_attribute(one, "spawn", own) for one in holders if callable(getattr(one, "spawn", 0))])

    return [
        Hook(_WHAT, _HOLDERS[0], _VERSIONS, group),
        Hook("DistributedDataParallel on a rank of the job", "torch.nn.parallel.distributed", _VERSIONS, _answer_ddp),
        Hook(
            "the processes that torch.multiprocessing.spawn starts", "torch.multiprocessing.spawn", _VERSIONS, spawned
        ),
    ]


def _fake_init(original: Callable[..., None], world: int, rank: int) -> Callable[..., None]:
    @functools.wraps(original)
    def init_process_group(*_: Any, **__: Any) -> None:
        importlib.import_module(_FAKE.module)  # it registers the backend
        original("fake", store=_FAKE.get()(), rank=rank, world_size=world)

    return init_process_group


def _answer_ddp(module: types.ModuleType) -> Undo:
    """The reducer of DDP takes the result of its all-reduce, which the fake group does not have: gradients stay as they
    are.  A hook for it that the script registers is not called."""
    ddp: Any = module.DistributedDataParallel
    made, registered = ddp.__init__, ddp.register_comm_hook

    @functools.wraps(made)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        module.dist._register_comm_hook(self.reducer, None, _reduced)

    @functools.wraps(registered)
    def register(self: Any, state: object, hook: Any) -> None:
        self._comm_hooks.append((hook, state))

    return undo_all([replace_attribute(ddp, "__init__", init), replace_attribute(ddp, "register_comm_hook", register)])


def _reduced(_: object, bucket: Any) -> Any:
    future = sys.modules["torch"].futures.Future()
    future.set_result(bucket.buffer())
    return future


def _spawn_one(world: int, rank: int, local_rank: int) -> Callable[..., None]:
    def spawn(fn: Callable[..., object], args: tuple[Any, ...] = (), nprocs: int = 1, *_: Any, **__: Any) -> None:
        """Calls what each process would, for this rank alone."""
        fn(rank if nprocs == world else local_rank % nprocs, *args)

    return spawn
