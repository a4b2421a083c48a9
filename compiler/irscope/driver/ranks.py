"""Runs some ranks of a job, each in its own process, to be merged (`irscope.driver.merging`).

With the fake group the job does not exist: each rank has PyTorch's fake process group, which answers as if the others
were there.  So two ranks of 1,024 need two processes.  Without it all ranks of the job run on this machine, and
communicate as the script says.
"""

from __future__ import annotations

import dataclasses
import os
import socket
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from irscope.driver.driver import RunSpec, execute
from irscope.driver.merging import RankDone
from irscope.internals.flight_recorder import VARIABLES
from irscope.protocol import Outcome, OutcomeKind
from irscope.store.store import Store
from irscope.worker.client import Worker

RANKS_PER_MACHINE = 8
MOST_RANKS = 256
"""That are run; each takes a process, and seconds."""
_PORT = "29500"
"""A port on which nobody listens."""
_GRACE_SECONDS = 10.0
"""For the other ranks to notice that one has failed, and to say so themselves."""


def ranks_of(given: str, world: int) -> tuple[int, ...]:
    """The ranks of ``0,37`` or ``0-3,37``; of an empty text the first and the last.

    Raises LookupError with a message for the user.
    """
    if not given.strip():
        return tuple(dict.fromkeys((0, world - 1)))
    found: dict[int, None] = {}
    for part in given.split(","):
        low, dash, high = part.strip().partition("-")
        if not low.isdecimal() or (dash and not high.isdecimal()) or int(high or low) < int(low):
            raise LookupError(f"--ranks {given}: {part.strip()!r} is not a rank. Write ranks with commas, as in 0,37.")
        if int(high or low) >= world:
            raise LookupError(f"--ranks {given}: the ranks of --world {world} are 0 to {world - 1}.")
        if int(high or low) - int(low) >= MOST_RANKS or len(found) > MOST_RANKS:
            raise LookupError(f"--ranks {given}: at most {MOST_RANKS} ranks can be run. Choose some that differ.")
        found.update(dict.fromkeys(range(int(low), int(high or low) + 1)))
    return tuple(found)


def ranks_on_this_machine(number: int) -> int:
    """The same number.  Raises LookupError with a message for the user if it is too large for one machine."""
    if number > MOST_RANKS:
        raise LookupError(f"--nproc-per-node {number}: at most {MOST_RANKS} ranks can be run on one machine.")
    return number


def rank_spec(spec: RunSpec, world: int, rank: int, per_machine: int = 0) -> RunSpec:
    """The run of one rank under the fake group, with the variables that torchrun would set.

    Args:
        per_machine: How many ranks each machine has; 0: eight, as most have GPUs.
    """
    return _rank_spec(spec, world, rank, min(world, per_machine or RANKS_PER_MACHINE), _PORT, fake=True)


def real_specs(spec: RunSpec, world: int) -> list[RunSpec]:
    """The runs of all ranks of a job on this machine."""
    with socket.socket() as free:  # torchrun takes a free port in the same way
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    return [_rank_spec(spec, world, rank, world, port, fake=False) for rank in range(world)]


def _rank_spec(spec: RunSpec, world: int, rank: int, local_world: int, port: str, fake: bool) -> RunSpec:
    variables = {
        "RANK": rank, "WORLD_SIZE": world, "LOCAL_RANK": rank % local_world, "LOCAL_WORLD_SIZE": local_world,
        "GROUP_RANK": rank // local_world, "GROUP_WORLD_SIZE": -(-world // local_world),
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
    }  # fmt: skip
    recorder = {} if fake else VARIABLES
    env = {**recorder, **(spec.env or {}), **{name: str(value) for name, value in variables.items()}}
    return dataclasses.replace(
        spec, env=env, world=world, rank=rank, local_rank=rank % local_world, local_world=local_world, fake_group=fake
    )


def run_ranks(
    specs: Sequence[RunSpec],
    store: str,
    *,
    on_bytes: Callable[[int, str, bytes], None] = lambda rank, stream, data: None,
    on_end: Callable[[int, Outcome], None] = lambda rank, outcome: None,
    cancel: threading.Event | None = None,
    worker: Worker | None = None,
) -> list[RankDone]:
    """Runs ranks; in their order when all have ended.

    Under the fake group as many at a time as there are processors.  Ranks that communicate run all at a time, and if
    one of them fails, the others are stopped, since they may wait for it.

    Args:
        specs: One for each rank, from `rank_spec`.
        store: Path of the run store.
        on_bytes, on_end: Called by several threads: with what a rank has printed, and when it has ended.
        cancel: Set by another thread to stop all of them.
    """
    stop = cancel or threading.Event()

    def one(spec: RunSpec) -> RankDone:
        with Store(store) as own:
            run, outcome = execute(
                spec, own, on_bytes=lambda stream, data: on_bytes(spec.rank, stream, data), cancel=stop, worker=worker
            )
        on_end(spec.rank, outcome)
        if not spec.fake_group and outcome.kind is not OutcomeKind.COMPLETED:
            timer = threading.Timer(_GRACE_SECONDS, stop.set)
            timer.daemon = True
            timer.start()
        return RankDone(spec.rank, run, outcome)

    at_a_time = min(len(specs), os.cpu_count() or 1) if specs[0].fake_group else len(specs)
    with ThreadPoolExecutor(at_a_time, "irscope-rank") as pool:
        try:
            return [future.result() for future in [pool.submit(one, spec) for spec in specs]]
        except BaseException:  # Ctrl-C as well: the processes must not outlive this one
            stop.set()
            raise
