"""The arguments of ``irscope open``."""

from __future__ import annotations

import argparse

from irscope.cli.shared_arguments import add_json_and_store

DESCRIPTION = """\
Opens what PyTorch has recorded elsewhere.

A structured trace (a folder of TORCH_TRACE, a log of it, an archive or raw.jsonl of tlparse; .gz and .zst, too) becomes a run
in the store, with its findings, stages, graphs and kernels.  Its source files are looked for below the current folder.
It is never executed; what is damaged is counted and the rest is read.

A folder or an archive with the logs of several ranks is read whole, and the ranks are compared: one of each group that
compiled the same becomes a run.

A big log need not be opened whole: --overview indexes it and lists its compiles, --compile ID opens one of them, and
--follow prints compiles while the log is being written.

A trace that torch.profiler has exported (export_chrome_trace; .json or .json.gz) is read, and whose time it is, is printed.
With --run it is joined to the kernels and lines of a run in the store, with --store alone to those of its newest run that
fits: the trace has kernels that the run generated, or the run's script in a stack.  Else it has the names in the trace.

A compiled artifact (a function saved by aot_compile, save_cache_artifacts, a CompiledArtifact, a folder of caches, a package
of AOTInductor, a program of torch.export) is listed without unpickling it: graphs, kernels, guards, what it was made for, and
what differs here. With --run its inputs and cache keys are compared with a run of the deep lane. With --trust the guards of a
saved function are loaded, which can execute what is in the file; with --script they judge each call that the script makes."""


def add_to(command: argparse.ArgumentParser) -> None:
    """Adds all of them to a parser."""
    command.description = DESCRIPTION
    add_json_and_store(command)
    command.add_argument("trace", metavar="PATH", help="the trace or the artifact: a file, a folder or an archive")
    command.add_argument(
        "--run",
        metavar="RUN",
        help="profiler's trace: ID or prefix of its run (default: the newest that fits of a store "
        "that --store names, else none)",
    )
    command.add_argument(
        "--source-root",
        metavar="DIR",
        help="look for source files below this folder first (default: the current one, last)",
    )
    command.add_argument(
        "--map", metavar="A=B", type=_replacement, action="append", default=[],
        help="paths that begin with A begin with B here; may be repeated",
    )  # fmt: skip
    command.add_argument(
        "--log",
        metavar="NAME",
        default="",
        help="of several logs, the one with NAME in its name (default: those of all ranks, else the largest)",
    )
    command.add_argument(
        "--strict", action="store_true", help="fail at the first thing that is wrong with a structured trace"
    )
    command.add_argument(
        "--overview", action="store_true",
        help="of a big structured log: index it, and print its longest compiles; the index is kept",
    )  # fmt: skip
    command.add_argument("--compile", metavar="ID", default="", help="of a big structured log: open this compile only")
    command.add_argument(
        "--follow", action="store_true", help="of a structured log that is still being written: print each new compile"
    )
    command.add_argument(
        "--all", action="store_true", help="profiler's trace or artifact: print every row of each table"
    )
    command.add_argument(
        "--trust", metavar="DIGEST", default="",
        help="saved function: load its guards in a separate process; the SHA-256 of the file, or its first 12 digits",
    )  # fmt: skip
    command.add_argument(
        "--script", metavar="COMMAND", default="",
        help="with --trust: run this script (with its arguments, as one word) without compile, and judge its calls",
    )  # fmt: skip
    command.set_defaults(do=("opening", "open_trace"))


def _replacement(text: str) -> tuple[str, str]:
    before, equals, after = text.partition("=")
    if not before or not equals:
        raise argparse.ArgumentTypeError(f"Invalid replacement: {text!r} (A=B)")
    return before, after
