"""The arguments of ``irscope run``, and those that ``irscope check`` shares with it."""

from __future__ import annotations

import argparse

from irscope.cli import entry_arguments, limits, rank_arguments
from irscope.cli.shared_arguments import add_cwd, add_json_and_store, add_python
from irscope.protocol import DEFAULT_PIPELINE
from irscope.vocabulary.command_line import Parser
from irscope.vocabulary.severity_option import severity_option

_DESCRIPTION = """\
Runs SCRIPT as `python SCRIPT ARGS…` does, in the current folder, and captures what torch.compile does meanwhile; or a
module as `python -m MODULE ARGS…` does; or tests as `python -m pytest NODE ARGS…` does, in this process; or the code
cells of a notebook one after the other, in its folder, with magics and shell lines left out.
With --model and --inputs no script is needed: both files are imported, the model is passed to torch.compile and called once.
The script's own output appears as it is printed (with --json on stderr).  Its exit code is in the outcome; with
--exit-code the command exits with it, and with 128 + N if signal N ended the script.

The deep lane runs the pipeline that the script asked for.  To see every stage it lets the FX graph cache and the
AOTAutograd cache miss; the cache of compiled kernels stays in use.  The fast lane replaces registered backends
(inductor and similar ones) by the eager one: graph breaks, guards and recompilations are the same, and no C++ compiler
is needed.  A backend that is your own function runs as it is.

A limit ends the run, with every process that it started, and is named in the outcome; what was found stays."""


def add_to(run: Parser) -> None:
    """Adds all of them to a parser."""
    run.description = _DESCRIPTION
    add_json_and_store(run)
    entry_arguments.add_to(run)
    run.add_argument(
        "--exit-code", action="store_true",
        help="exit as the script did (128 + N after signal N, 124 where a limit ended it) instead of with 0",
    )  # fmt: skip
    run.add_argument(
        "--lane",
        choices=["fast", "deep"],
        default="deep",
        help="how much of the pipeline to capture (default: %(default)s)",
    )
    add_shared(run)
    run.add_argument(
        "--no-symbolic-trace", dest="symbolic_trace", action="store_false", default=None,
        help="do not record Dynamo's walk over the instructions, which takes a tenth of its time; the fast lane never does",
    )  # fmt: skip
    run.add_argument(
        "--check-without-compile", action="store_true",
        help="if the script fails inside compiled code, run it again without compile and say whether it fails, too",
    )  # fmt: skip
    run.add_argument(
        "--target", metavar="NAMES",
        help="predict the kernels for these devices, too (irscope targets), as in h100,a100; needs the package triton",
    )  # fmt: skip
    run.add_argument(
        "--tuned", metavar="FILE",
        help="with --target: choose again what the real device has chosen by timing, in the newest runs of this run store",
    )  # fmt: skip
    run.add_argument(
        "--config", metavar="[NAME=]N", action="append", default=[],
        help="with --target: take the N-th of the choices that `irscope show --autotuning` lists, of all or of an operator or kernel",
    )  # fmt: skip
    run.add_argument(
        "--fake", action="store_true",
        help="with --target: tensors have shapes and no storage, so that a model larger than the memory can be compiled; "
        "where the script needs a value it gets zeros, and that is a finding",
    )  # fmt: skip
    run.add_argument(
        "--no-machine-code", dest="machine_code", action="store_false",
        help="with --target: keep the source of each kernel and do not compile it to PTX or AMDGCN, which takes longer",
    )  # fmt: skip
    rank_arguments.add_ranks(run)
    run.set_defaults(do=("running", "run"))


def add_shared(run: argparse.ArgumentParser) -> None:
    """Adds those that both commands have."""
    limits.add_flags(run, "run")
    add_python(run, "interpreter that runs the script; it needs only torch 2.9 or newer")
    run.add_argument("--baseline", metavar="FILE", help="hide the findings in this baseline file")
    run.add_argument("--write-baseline", metavar="FILE", help="write the findings to this baseline file")
    run.add_argument(
        "--severity", metavar="CODE=LEVEL", action="append", type=severity_option, default=[],
        help="error, warning, information, hint or off for a code (GB0059) or a kind (recompilation); may be repeated",
    )  # fmt: skip
    add_cwd(run)
    run.add_argument(
        "--pipeline", metavar="NAME", default=DEFAULT_PIPELINE,
        help="the compiler that the programs go through (default: %(default)s); `irscope pipelines` lists them",
    )  # fmt: skip
