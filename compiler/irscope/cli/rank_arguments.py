"""The arguments of ``irscope run`` for a job of several ranks."""

from __future__ import annotations

import argparse

from irscope.cli.numbers import whole_number

TORCHRUN = {
    "nnodes": ("N", "how many machines the job has, or MIN:MAX"),
    "node_rank": ("N", "which of the machines this is"),
    "master_addr": ("HOST", "the machine of rank 0"),
    "master_port": ("PORT", "the port of rank 0"),
    "rdzv_backend": ("NAME", "how the machines find each other (c10d)"),
    "rdzv_endpoint": ("HOST:PORT", "where they find each other"),
    "rdzv_id": ("ID", "the name of the job"),
    "rdzv_conf": ("A=B", "more for the backend, with commas between"),
    "max_restarts": ("N", "how often a failed job is started again"),
}
"""Options of torchrun that are passed on, by their names, each with its placeholder and its help."""


def add_ranks(run: argparse.ArgumentParser) -> None:
    """Adds them to a parser."""
    run.add_argument(
        "--world", metavar="N", type=whole_number("ranks", 1, 1_000_000),
        help="run as ranks of a job with N ranks, with PyTorch's fake process group: no other machine or GPU is needed",
    )  # fmt: skip
    run.add_argument(
        "--ranks", metavar="LIST", default="",
        help="with --world: which of the ranks are run and compared, as in 0,37 or 0-3 (default: the first and the last)",
    )  # fmt: skip
    run.add_argument(
        "--nproc-per-node", metavar="K", type=whole_number("ranks", 1, 1_000_000),
        help="run as a job of K ranks on this machine, as torchrun does; with --world: how many ranks each machine has (8)",
    )  # fmt: skip
    for name, (metavar, what) in TORCHRUN.items():
        option = f"--{name.replace('_', '-')}"
        run.add_argument(option, metavar=metavar, help=f"of torchrun, with --nproc-per-node: {what}")
