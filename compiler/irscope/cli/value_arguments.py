"""The arguments of ``irscope values``, ``irscope diverge`` and ``irscope watch``."""

from __future__ import annotations

from irscope.cli import limits
from irscope.cli.numbers import whole_number
from irscope.cli.shared_arguments import add_cwd, add_json_and_store, add_python, add_target
from irscope.vocabulary.command_line import Parser

_VALUES = """\
Runs SCRIPT and, at one call of each compiled graph, runs the graph node by node on the inputs of that call: what each node
computes, with statistics.  The script's results and output do not change."""

_DIVERGE = """\
Compares each program that Dynamo traced, as a whole, with the same program without compile.  Then runs SCRIPT and, at one
call of each compiled graph, compares what the compiled code writes to memory with the same operations in eager mode and in
float64, node by node.  Names the first node that is off by more than is normal for it, the
user's line, and the pass, the lowering or the kernel that made it so (docs/values.md)."""

_WATCH = """\
Runs SCRIPT as it is and looks at what leaves its compiled graphs, at the loss and at the parameters in every step.  At the
first NaN or infinity it runs the last steps again, node by node, and names the step, the line, the node and its operand, and
whether the model, the data, the optimizer or the compiler made it (docs/values.md).  The exit code is the script's."""


def add_values(values: Parser) -> None:
    """Adds those of ``irscope values``."""
    values.description = _VALUES
    _add_common(values, "values")
    values.add_argument(
        "--stage", metavar="NAME", help="a graph stage by name, as in post-grad-graph; all: every graph"
    )
    add_target(values, ", computed on the CPU", "the post-grad graph")
    values.add_argument("--node", metavar="NAME", help="one node, with its first elements and a small picture")


def add_diverge(diverge: Parser) -> None:
    """Adds those of ``irscope diverge``."""
    diverge.description = _DIVERGE
    _add_common(diverge, "diverge")
    diverge.add_argument("--all", action="store_true", help="every node that was compared, matching ones too")
    diverge.add_argument(
        "--reproducer",
        metavar="FILE",
        help="write a standalone script that reproduces the divergence, and run it",
    )


def add_watch(watch: Parser) -> None:
    """Adds those of ``irscope watch``."""
    watch.description = _WATCH
    _add_run(watch, "watch")
    watch.add_argument(
        "--against", choices=("eager", "float64"), help="also find the first step that drifts from this (slow)"
    )
    watch.add_argument(
        "--replay-memory", metavar="MB", type=whole_number("megabytes", 1, 10**7), default=2000,
        help="for the copies from which the last steps are run again (default: %(default)s)",
    )  # fmt: skip
    watch.set_defaults(do=("watching", "watch"))


def _add_common(numbers: Parser, name: str) -> None:
    _add_run(numbers, name)
    numbers.add_argument("--compile", metavar="ID", help="only in this compile, as in 0/0")
    numbers.add_argument(
        "--call", metavar="N", type=whole_number("calls", 1, 10**9), default=1, help="which call (default: the first)"
    )
    numbers.add_argument(
        "--inputs",
        metavar="FILE",
        help="inputs in place of the call's own: a .py file that defines `inputs`, or a dict that torch.save wrote",
    )


def _add_run(numbers: Parser, name: str) -> None:
    add_json_and_store(numbers)
    numbers.add_argument("script", metavar="SCRIPT", nargs="?", help="the Python script")
    numbers.add_argument("-m", dest="module", metavar="MODULE", help="run a module instead, by its dotted name")
    numbers.add_argument("args", metavar="ARGS", nargs="*", help="its arguments, after --")
    limits.add_flags(numbers, name)
    add_cwd(numbers)
    add_python(numbers)
    numbers.set_defaults(do=("values", name), pytest=None, model=None)
