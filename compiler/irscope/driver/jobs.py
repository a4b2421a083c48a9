"""A run that another launcher has started as one rank of a job: torchrun, or Slurm's srun.

Each rank's process runs the script by itself and keeps its run.  The rank that is the first on its machine then waits for
the others there, and merges them.
"""

from __future__ import annotations

import dataclasses
import hashlib
import time
from collections.abc import Mapping

from irscope.driver.driver import RunSpec
from irscope.driver.merging import RankDone
from irscope.internals.flight_recorder import VARIABLES
from irscope.store.store import Store
from irscope.vocabulary.records import dataclass

_TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
_SLURM = ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID")
_TORCHRUN_NAMES = ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT")
_SLURM_NAMES = ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT")
_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Job:
    """Which rank of which job this process is.

    Args:
        name: The same for all ranks of the job, and for no other job.
        local_world: How many ranks this machine has; 0 if the launcher does not tell it.
    """

    name: str
    world: int
    rank: int
    local_rank: int
    local_world: int

    @property
    def merges(self) -> bool:
        """Whether this rank merges those of its machine."""
        return self.local_rank == 0


def job_of(variables: Mapping[str, str]) -> Job | None:
    """The job that a launcher's variables name; None for a plain run, and for a job of one rank."""
    if all(variables.get(name, "").isdecimal() for name in _TORCHRUN) and "TORCHELASTIC_RUN_ID" in variables:
        rank, world, local, locals_ = (int(variables[name]) for name in _TORCHRUN)
        names: tuple[str, ...] = _TORCHRUN_NAMES
    elif all(variables.get(name, "").isdecimal() for name in _SLURM) and "SLURM_STEP_ID" in variables:
        rank, world, local = (int(variables[name]) for name in _SLURM)
        # "2(x3),1": of each node; the number is known only if all nodes have the same.
        per_node, _, times = variables.get("SLURM_STEP_TASKS_PER_NODE", "").partition("(")
        locals_ = int(per_node) if per_node.isdecimal() and "," not in times else 0
        names = _SLURM_NAMES
    else:
        return None
    if not 0 <= rank < world or world < 2:
        return None
    text = "\0".join(variables.get(name, "") for name in names)
    return Job(hashlib.sha256(text.encode()).hexdigest()[:16], world, rank, local, locals_)


def spec_in(job: Job, spec: RunSpec) -> RunSpec:
    """The run of this rank.  The launcher's variables are there already."""
    return dataclasses.replace(
        spec, world=job.world, rank=job.rank, local_rank=job.local_rank, local_world=job.local_world, job=job.name,
        env={**VARIABLES, **(spec.env or {})},
    )  # fmt: skip


def others_of(job: Job, store: Store, own: RankDone, seconds: float) -> list[RankDone]:
    """All ranks of this machine whose runs have ended, in order; waits so long for those that have not.

    Ranks of other machines are in their own stores.
    """
    until = time.monotonic() + seconds
    while True:
        found = {own.rank: own}
        for summary in store.runs(limit=4 * (job.local_world or job.world) + 20):
            how, _ = store.how_run(summary.run)
            rank = how.get("rank")
            if how.get("job") == job.name and isinstance(rank, int) and summary.outcome is not None:
                found.setdefault(rank, RankDone(rank, summary.run, summary.outcome))
        if len(found) >= (job.local_world or job.world) or time.monotonic() > until:
            return [found[rank] for rank in sorted(found)]
        time.sleep(_POLL_SECONDS)
