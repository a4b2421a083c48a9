"""``irscope run --nproc-per-node K --nnodes N …``: a job on several machines, whose ranks torchrun starts.

torchrun finds the other machines and gives each rank its number; each rank is an ``irscope run`` (`job_ranks`).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
from collections.abc import Sequence

from irscope.cli.rank_arguments import TORCHRUN
from irscope.driver.debuggers import without_debugger
from irscope.system.warden import end_with_parent

_AS_RANK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "as_rank.py")


def command_of(options: argparse.Namespace, given: Sequence[str]) -> list[str]:
    """The command line of torchrun.

    Args:
        given: The arguments of ``irscope run``; each rank gets them without what is torchrun's.

    Raises LookupError if the options do not fit together.
    """
    if not options.nproc_per_node or options.world:
        raise LookupError("torchrun's options need --nproc-per-node K, and no --world.")
    own = [
        f"--{name.replace('_', '-')}={getattr(options, name)}"
        for name in TORCHRUN
        if getattr(options, name) is not None
    ]
    python = shutil.which(options.python)
    if python is None:
        raise LookupError(f"No Python interpreter at {options.python}. Name one that has torch (--python PATH).")
    launcher = [python, "-m", "torch.distributed.run", f"--nproc-per-node={options.nproc_per_node}", *own]
    return [*launcher, _AS_RANK, "run", *_of_rank(given)]


def _of_rank(given: Sequence[str]) -> list[str]:
    """Without the options that torchrun has got; what is after ``--`` is the script's."""
    at = list(given).index("--") if "--" in given else len(given)
    names = {f"--{name.replace('_', '-')}" for name in (*TORCHRUN, "nproc_per_node")}
    found, skip = [], False
    for argument in given[:at]:
        if skip:
            skip = False
        elif argument.partition("=")[0] in names:
            skip = "=" not in argument
        else:
            found.append(argument)
    return [*found, *given[at:]]


def run(options: argparse.Namespace, given: Sequence[str]) -> int:
    """Runs torchrun, which prints what the ranks print; its exit code.  If this process is killed, torchrun ends with it, and
    the ranks with that."""
    command = command_of(options, given)
    environment = without_debugger(os.environ)
    with subprocess.Popen(command, env=environment, cwd=options.cwd, preexec_fn=end_with_parent) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:  # torchrun has got it as well, and stops its ranks
            return process.wait()
