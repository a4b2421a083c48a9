"""The arguments of ``irscope profile``."""

from __future__ import annotations

import argparse

from irscope.cli import entry_arguments
from irscope.cli.numbers import whole_number
from irscope.cli.shared_arguments import add_cwd, add_json_and_store, add_python
from irscope.pipelines.registry import pipeline_named
from irscope.vocabulary.lanes import DEFAULT_PIPELINE

DESCRIPTION = """\
Runs a script through Inductor to its end, then calls each compiled program again with copies of the arguments of its first call,
until it is warm, and measures N calls with PyTorch's profiler; with a backward, if the script had one compiled.
Prints by module and by line what the kernels took and what is possible at least, each kernel, and whose the rest of
the time is: guards, generated wrappers, eager operators at graph breaks, Python.  The profile stays with the run in the
store.  The script's results and output do not change; C++ kernels get one statement by which the profiler sees them."""


def add_to(profile: argparse.ArgumentParser) -> None:
    """Adds all of them to a parser."""
    profile.description = DESCRIPTION
    add_json_and_store(profile)
    entry_arguments.add_to(profile)
    profile.add_argument(
        "--calls",
        metavar="N",
        type=whole_number("calls", 1, 10_000),
        default=20,
        help="calls of each program (default: %(default)s)",
    )
    profile.add_argument(
        "--memory", action="store_true",
        help="also measure the memory of one step at its peak: what is held, why, and by which line and module",
    )  # fmt: skip
    profile.add_argument(
        "--start", action="store_true",
        help="measure instead where the time of a start goes, from the begin of the process to the end of the script: with "
        "empty caches, with those of the start before, and with `load_cache_artifacts` (three runs of the script)",
    )  # fmt: skip
    profile.add_argument(
        "--artifact", metavar="COMMAND", default="",
        help="with --start: also start this script (with its arguments, as one word), which loads an artifact",
    )  # fmt: skip
    profile.add_argument("--all", action="store_true", help="print every row of each table")
    profile.add_argument(
        "--without-breaks", action="store_true",
        help="also run the script with each graph break and recompilation removed by a fix that `irscope fix` verifies, and measure the difference (minutes)",
    )  # fmt: skip
    profile.add_argument(
        "--against", metavar="NAMES", type=_pipelines, default=(),
        help="also time each graph between breaks through these pipelines, with commas, beside Inductor: onnx,openvino (minutes)",
    )  # fmt: skip
    add_python(profile)
    add_cwd(profile)
    profile.set_defaults(do=("profiling", "profile"))


def _pipelines(text: str) -> tuple[str, ...]:
    """Names of pipelines other than Inductor, each once."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in names:
        try:
            pipeline_named(name)
        except LookupError as error:
            raise argparse.ArgumentTypeError(str(error)) from error
    if not names or DEFAULT_PIPELINE in names:
        raise argparse.ArgumentTypeError(
            f"Invalid pipelines: {text!r}. Name others than {DEFAULT_PIPELINE}, which is always there: onnx,openvino."
        )
    return names
