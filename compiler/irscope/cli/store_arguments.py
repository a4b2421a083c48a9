"""The arguments of the commands that read the store: ``irscope list``, ``show``, ``explain``, ``diff`` and ``why-miss``."""

from __future__ import annotations

import os
import sys

from irscope.cli.numbers import seconds_or_zero, whole_number
from irscope.cli.shared_arguments import add_json_and_store, add_run, add_target
from irscope.vocabulary.command_line import Parser

_EXPLAIN = """\
Why two kernels were or were not fused: what Inductor's scheduler decided on each pair of their parts, with
its own reason or score, and the user's lines that the parts came from."""

_DIFF = """\
With two runs: what changed from the first to the second.  With one: from the run of the same script, lane and
pipeline before it.
Findings, compiles and kernels are matched across an edit of the script; kernels by their code, not their names.

With --stage: what changed between two stages of one run, or of one stage between two runs.  Graphs are compared by
structure: a node that was only renumbered is the same.

  irscope diff                                                  the newest run against the previous one
  irscope diff --stage 0/0/joint-graph 0/0/forward-graph
  irscope diff 20260101-1 20260102-1 --stage 0/0/output-code
  irscope diff --target h100,mi300x                             what two targets get (docs/targets.md)

With --python twice: one script in two environments, and the cause of each difference (docs/upgrades.md).
Causes are confirmed by running the script again with the older value of what changed.

  irscope diff --python old/bin/python --python new/bin/python train.py -- --steps 2"""

_WHY_MISS = """\
Why the second run cannot use what the first has put into PyTorch's caches: of each graph the parts of its key in the FX
graph cache and in the AOTAutograd cache that differ, and of each Triton kernel what makes it another one.

A run is an ID of the store, a file of another store (its newest run), or a structured trace (docs/upgrades.md)."""


def add_list(list_: Parser) -> None:
    """Adds those of ``irscope list``."""
    add_json_and_store(list_)
    list_.add_argument(
        "--limit",
        metavar="N",
        type=whole_number("runs", 1, 10**9),
        default=20,
        help="at most this many (default: %(default)s)",
    )
    list_.set_defaults(do=("listing", "list_runs"))


def add_show(show: Parser) -> None:
    """Adds those of ``irscope show``."""
    add_json_and_store(show)
    add_run(show)
    show.add_argument("--compile", metavar="ID", help="a compile, as in 0/0")
    show.add_argument(
        "--stage", metavar="NAME", help="a stage by name (post-grad-graph) or by id (0/0/post-grad-graph)"
    )
    show.add_argument("--kernel", metavar="NAME", help="a generated kernel")
    show.add_argument(
        "--guards", action="store_true", help="the guards of each compile: the line that made each, and which failed"
    )
    show.add_argument("--line", metavar="FILE:LINE", help="a line of the source")
    show.add_argument(
        "--costs", action="store_true",
        help="bytes and floating-point operations of each kernel, or with --stage of each node of a graph",
    )  # fmt: skip
    add_target(show, "; with --costs also the lower bound of the time on it (default: the GPU of the run)")
    show.add_argument(
        "--all",
        action="store_true",
        help="with --line, --guards, --costs, --modules, --time or --memory, or of measured time: print every row, also as JSON",
    )
    show.add_argument(
        "--autotuning", action="store_true", help="what max-autotune tried for each operator, and what each choice took"
    )
    show.add_argument(
        "--resources", action="store_true",
        help="registers, spilled bytes, shared memory, occupancy and the matrix instruction of each Triton kernel",
    )  # fmt: skip
    show.add_argument(
        "--ranks", action="store_true",
        help="the ranks of a job: what each compiled and communicates, and who waited; its findings by rank",
    )  # fmt: skip
    trees = {
        "--modules": "what was compiled, by module: kernels, graphs, compile time, and a step's time in kernels",
        "--time": "where the compile time went: per phase, pass and kernel",
        "--memory": "what the buffers of each graph take, by module",
    }
    for option, help in trees.items():
        show.add_argument(option, dest="tree", action="store_const", const=option[2:], help=help)
    show.add_argument("--than", metavar="RUN", help="with one of these three: what changed since another run")
    show.add_argument(
        "--python", metavar="PATH", default=os.environ.get("IRSCOPE_PYTHON") or sys.executable,
        help="interpreter whose compilers make a kernel's assembly, sass and passes (default: %(default)s)",
    )  # fmt: skip
    show.set_defaults(do=("showing", "show"))


def add_explain(explain: Parser) -> None:
    """Adds those of ``irscope explain``."""
    explain.description = _EXPLAIN
    add_json_and_store(explain)
    add_run(explain)
    explain.add_argument(
        "--fusion", metavar=("K1", "K2"), nargs=2, required=True,
        help="two kernels, nodes of the schedule (op3) or nodes of the post-grad graph (mul_1)",
    )  # fmt: skip
    explain.add_argument("--compile", metavar="ID", help="only in this compile")
    add_target(explain)
    explain.set_defaults(do=("explaining", "explain"))


def add_diff(diff: Parser) -> None:
    """Adds those of ``irscope diff``."""
    diff.description = _DIFF
    add_json_and_store(diff)
    diff.add_argument(
        "runs", metavar="RUN", nargs="*", help="one or two runs (default: the newest); with --python a script"
    )
    diff.add_argument("args", metavar="ARGS", nargs="*", help="with --python: the script's arguments, after --")
    diff.add_argument("--stage", metavar="STAGE", nargs="+", help="one or two stages, by name or id")
    diff.add_argument("--compile", metavar="ID", help="the compile of stages that are named without it")
    diff.add_argument("--text", action="store_true", help="compare graphs as text, too")
    diff.add_argument(
        "--target", metavar="NAMES",
        help="compare predictions: for two targets of a run (h100,mi300x), or for one target of two runs",
    )  # fmt: skip
    diff.add_argument(
        "--python", metavar="PATH", action="append", default=[],
        help="twice: the interpreters of two environments; then the words are a script and its arguments",
    )  # fmt: skip
    diff.add_argument("-o", "--output", metavar="FILE", help="with --python: write a report in Markdown")
    diff.add_argument(
        "--seconds", metavar="N", type=seconds_or_zero, default=600,
        help="with --python: look so long for causes at most; 0: do not (default: %(default)s)",
    )  # fmt: skip
    diff.set_defaults(do=("diffing", "diff"))


def add_why_miss(why: Parser) -> None:
    """Adds those of ``irscope why-miss``."""
    why.description = _WHY_MISS
    add_json_and_store(why)
    why.add_argument("before", metavar="A", help="the first run: an ID, a store or a trace")
    why.add_argument("after", metavar="B", help="the second run: an ID, a store or a trace")
    why.set_defaults(do=("why_miss", "why_miss"))
