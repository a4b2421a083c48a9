"""The arguments of the command ``irscope``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from irscope import __version__
from irscope.cli import (
    check_arguments,
    compare_arguments,
    environment_arguments,
    fix_arguments,
    graph_arguments,
    limits,
    opening_arguments,
    profile_arguments,
    rank_arguments,
    reporting_arguments,
    run_arguments,
    target_arguments,
)
from irscope.cli.completing import SHELLS
from irscope.ir.roofline import TARGETS
from irscope.vocabulary.command_line import Parser
from irscope.vocabulary.suggestions import did_you_mean

_DESCRIPTION = """\
See what torch.compile did to a script: graph breaks and recompilations on the exact source range,
every stage from the bytecode down to the generated kernels, and the way from a line to its kernels."""

_EXAMPLES = """\
examples:
  irscope run train.py -- --steps 10          run it, print the findings and the compiles
  irscope run train.py --lane fast            graph breaks and recompilations only, in seconds
  irscope run train.py --json > report.json   the same as data (docs/json.md)
  irscope run -m package.train -- --steps 10  a module, as `python -m package.train`
  irscope run train.ipynb                     the code cells of a notebook, in order
  irscope run --pytest tests/test_model.py::test_forward     tests, as `python -m pytest`
  irscope run --model 'net.py:Net()' --inputs 'net.py:torch.ones(2, 8)'     a model without a script
  irscope run train.py --steady-calls 32      stop once nothing new appears
  irscope run train.py --pipeline torchscript      through another compiler than Inductor
  irscope profile train.py                    what each line costs, measured, next to what is possible
  irscope open trace.json.gz                  the same of a trace that torch.profiler exported
  irscope pipelines                           the compilers, and which of them work here
  irscope run train.py --world 1024 --ranks 0,37   ranks of a job, without the others: where they differ
  irscope run train.py --target h100          also the kernels that an H100 would get, on any machine
  irscope verify-target h100 train.py         whether this H100 gets the kernels that were predicted for it
  irscope targets                             the devices that bounds are known for, with the source of each figure
  irscope env create xla                      an environment with what a compiler needs
  irscope run train.py --exit-code            exit as train.py did, for scripts and CI
  irscope check train.py --max-graphs 1       fail if there are graph breaks, recompilations or two graphs (docs/ci.md)
  irscope fix train.py                        fixes that were tried: same results, a graph break fewer
  irscope view                                the runs, stages and panels in a web browser
  irscope view --open model.py:42             the same, at this line
  irscope list                                the runs in the store, newest first
  irscope show                                the newest run again
  irscope show --compile 0/0                  the stages of one compile
  irscope show --compile 0/0 --stage post-grad-graph
  irscope show --kernel cpp_fused_relu_0      the source of a generated kernel
  irscope show --stage 0/0/kernel/cpp_fused_relu_0/assembly      created on request; sass and passes of Triton too
  irscope show --line model.py:42             the nodes and kernels that came from a line
  irscope show --guards                       what is checked before compiled code runs, and what failed
  irscope show --time                         where the compile time went, over all compiles
  irscope show --costs --target h100          what each kernel moves and computes, and the bound
  irscope explain --fusion KERNEL KERNEL      why Inductor did not fuse the two
  irscope diff                                what changed since the previous run
  irscope values train.py --compile 0/0       what each node of a graph computes on the real inputs
  irscope diverge train.py                    the first node at which compiled code and its graph differ
  irscope run train.py --write-baseline irscope-baseline.json
  irscope run train.py --baseline irscope-baseline.json      only what is new since then
  eval "$(irscope completion bash)"           completion with the Tab key, in this shell

A comment `# irscope: ignore[GB0059] reason` hides a finding on its line.

exit codes:
  0   captured, whatever the script did: its own failure is in the outcome (with `run --exit-code`: the script's own code)
  1   `irscope diverge` found a divergence, `irscope verify-target` a difference, or `irscope check` what must not be there
  2   wrong usage, or the store has nothing with that name
  3   the environment cannot run it (no such file, no torch, torch too old), or a file or the store cannot be used
  4   with `irscope check`: a script failed
  70  irscope itself failed; with IRSCOPE_DEBUG=1 it shows the traceback
  74  standard output could not be written, as on a full disk
  124 with `run --exit-code`: a limit ended the run
  130 interrupted (Ctrl-C)
  141 the reader of the output ended early, as in `irscope list | head -1`"""

_RUN = """\
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

_PIPELINES = """\
Lists the ways from a PyTorch program to machine code that irscope knows.  Each is tried: it compiles something small in a
separate process, and is available only if that works.  A trial that succeeded is repeated when Python, a package or the
trial has changed, or with --again."""


_EXPLAIN = """\
Why two kernels were or were not fused: what Inductor's scheduler decided on each pair of their parts, with
its own reason or score, and the user's lines that the parts came from."""

_DIFF = """\
With two runs: what changed from the first to the second.  With one: from the run of the same script and lane before it.
Findings, compiles and kernels are matched across an edit of the script; kernels by their code, not their names.

With --stage: what changed between two stages of one run, or of one stage between two runs.  Graphs are compared by
structure: a node that was only renumbered is the same.

  irscope diff                                                  the newest run against the previous one
  irscope diff --stage 0/0/joint-graph 0/0/forward-graph
  irscope diff 20260101-1 20260102-1 --stage 0/0/output-code"""


_VALUES = """\
Runs SCRIPT and, at one call of each compiled graph, runs the graph node by node on the inputs of that call: what each node
computes, with statistics.  The script's results and output do not change."""

_DIVERGE = """\
Runs SCRIPT and, at one call of each compiled graph, compares what the compiled code writes to memory with the same
operations in eager mode and in float64, node by node.  Names the first node that is off by more than is normal for it, the
user's line, and the pass, the lowering or the kernel that made it so (docs/values.md)."""

_COMPLETION = """\
Prints the script that makes a shell complete irscope's commands, options and files with the Tab key.

  eval "$(irscope completion bash)"     in this shell; in ~/.bashrc: in every one
  eval "$(irscope completion zsh)"      the same for zsh, in ~/.zshrc after compinit
  irscope completion fish | source      in fish, in ~/.config/fish/config.fish
  irscope completion tcsh > ~/.irscope.tcsh     and `source ~/.irscope.tcsh` in ~/.tcshrc"""


RUNS = ("run", "check", "fix", "profile", "compare", "values", "diverge", "verify-target")
"""The commands that run a script, which has arguments of its own after ``--``."""


class _Commands(Protocol):
    def add_parser(self, name: str, **options: Any) -> Parser: ...


def parser() -> Parser:
    """The parser of the whole command line; each subcommand sets ``do``: the module and the function that carry it out,
    imported when it is called for, since none needs what the others do."""
    return parsers()[0]


def parsers() -> tuple[Parser, Mapping[str, Parser]]:
    """The parser of the whole command line, and those of its commands."""
    top = Parser(prog="irscope", description=_DESCRIPTION, epilog=_EXAMPLES)
    top.add_argument("--version", action="version", version=f"irscope {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--json", action="store_true", help="print data instead of text (docs/json.md)")
    run_arguments.add_store(shared)
    made = [
        _add_run(commands, shared),
        _add_check(commands),
        _add_pipelines(commands),
        _add_targets(commands),
        _add_verify(commands, shared),
        _add_environments(commands),
        _add_fix(commands),
        _add_compare(commands, shared),
        _add_profile(commands, shared),
        _add_open(commands, shared),
        _add_list(commands, shared),
        _add_show(commands, shared),
        _add_graph(commands, shared),
        _add_report(commands, shared),
        _add_explain(commands, shared),
        _add_diff(commands, shared),
        commands.add_parser("view", add_help=False, help="the runs, stages and panels in a web browser"),
        _add_numbers(commands, shared, "values", "show what each node of a compiled graph computes", _VALUES),
        _add_numbers(commands, shared, "diverge", "find where compiled code computes a different number", _DIVERGE),
        _add_completion(commands),
    ]
    return top, {each.prog.split()[-1]: each for each in made}


def read(given: Sequence[str]) -> argparse.Namespace:
    """The options of a command line.  Raises SystemExit(2) for wrong usage."""
    top, commands = parsers()
    arguments, rest = _split(given)
    at = next((i for i, each in enumerate(arguments) if not each.startswith("-")), len(arguments))
    top.refuse_unknown(arguments[:at], " Options of a command come after it: irscope list --json.")
    if at == len(arguments):
        return top.read(arguments)  # --help, --version, or an error
    command = commands.get(arguments[at])
    if command is None:
        near = did_you_mean(arguments[at], commands) or f" The commands are: {', '.join(commands)}."
        top.error(f"unknown command: {arguments[at]}.{near}")
    has_script = arguments[at] in RUNS
    hint = " What belongs to the script comes after --: irscope run SCRIPT -- --its-option." if has_script else ""
    command.refuse_unknown(arguments[at + 1 :], hint)
    options, unknown = top.parse_known_args(arguments)
    if unknown:
        command.error(f"unexpected: {' '.join(unknown)}.{hint}")
    if rest is not None:
        if not has_script:
            command.error(f"only `irscope {'`, `'.join(RUNS[:-1])}` and `{RUNS[-1]}` take arguments after --")
        options.args = [*options.args, *rest]
    if has_script and options.command not in ("check", "fix"):
        _settle_entry(command, options)
    return options


def _add_run(commands: _Commands, shared: argparse.ArgumentParser) -> Parser:
    run = commands.add_parser(
        "run", parents=[shared], help="run a script and show what was compiled", description=_RUN,
    )  # fmt: skip
    _add_entry(run)
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
    run_arguments.add_to(run)
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
    rank_arguments.add_ranks(run)
    run.set_defaults(do=("running", "run"))
    return run


def _add_entry(command: Parser) -> None:
    """What is at the beginning of a run."""
    command.add_argument("script", metavar="SCRIPT", nargs="?", help="the Python script, or a notebook (.ipynb)")
    command.add_argument(
        "-m", dest="module", metavar="MODULE", help="run a module or package instead, by its dotted name"
    )
    command.add_argument("--pytest", metavar="NODE", help="run tests instead: a file, or one test as FILE::NAME")
    command.add_argument(
        "--model", metavar="FILE:EXPR",
        help="compile and call a model instead: what the Python expression gives in the namespace of the file",
    )  # fmt: skip
    command.add_argument(
        "--inputs", metavar="FILE:EXPR",
        help="with --model: what to call it with; a tuple or list by position, a dict by name",
    )  # fmt: skip
    command.add_argument("args", metavar="ARGS", nargs="*", help="its arguments, after --")


def _add_check(commands: _Commands) -> Parser:
    check = commands.add_parser(
        "check", help="fail if a script has graph breaks or recompilations", description=check_arguments.DESCRIPTION
    )
    check_arguments.add_to(check)
    check.add_argument("args", metavar="ARGS", nargs="*", help="arguments of each script, after --")
    run_arguments.add_to(check)
    run_arguments.add_store(check)
    return check


def _add_fix(commands: _Commands) -> Parser:
    fix = commands.add_parser(
        "fix", help="try the fixes of a script's findings, and apply those that are verified",
        description=fix_arguments.DESCRIPTION,
    )  # fmt: skip
    fix_arguments.add_to(fix)
    fix.set_defaults(do=("fixing", "fix"))
    return fix


def _add_compare(commands: _Commands, shared: argparse.ArgumentParser) -> Parser:
    compare = commands.add_parser(
        "compare", parents=[shared], help="run a script through several pipelines and compare them",
        description=compare_arguments.DESCRIPTION,
    )  # fmt: skip
    _add_entry(compare)
    compare_arguments.add_to(compare)
    compare.set_defaults(do=("comparing", "compare"))
    return compare


def _add_profile(commands: _Commands, shared: argparse.ArgumentParser) -> Parser:
    profile = commands.add_parser(
        "profile", parents=[shared], help="measure what each line of a script costs",
        description=profile_arguments.PROFILE,
    )  # fmt: skip
    _add_entry(profile)
    profile_arguments.add_profile(profile)
    profile.set_defaults(do=("profiling", "profile"))
    return profile


def _add_open(commands: _Commands, shared: argparse.ArgumentParser) -> Parser:
    command = commands.add_parser(
        "open", parents=[shared], help="open a trace that was recorded elsewhere", description=opening_arguments.OPEN
    )
    opening_arguments.add_open(command)
    command.set_defaults(do=("opening", "open_trace"))
    return command


def _add_pipelines(commands: _Commands) -> Parser:
    pipelines = commands.add_parser(
        "pipelines", help="list the pipelines, and which of them work here", description=_PIPELINES
    )
    pipelines.add_argument("--json", action="store_true", help="print data instead of text (docs/json.md)")
    pipelines.add_argument("--again", action="store_true", help="repeat the trials that succeeded before")
    pipelines.add_argument(
        "--python", metavar="PATH", default=os.environ.get("IRSCOPE_PYTHON") or sys.executable,
        help="interpreter in which they are tried (default: %(default)s; variable IRSCOPE_PYTHON)",
    )  # fmt: skip
    pipelines.set_defaults(do=("pipelining", "list_pipelines"))
    return pipelines


def _add_targets(commands: _Commands) -> Parser:
    targets = commands.add_parser(
        "targets", help="list the devices that are known, and their figures", description=target_arguments.TARGETS
    )
    target_arguments.add_targets(targets)
    return targets


def _add_verify(commands: _Commands, shared: argparse.ArgumentParser) -> Parser:
    verify = commands.add_parser(
        "verify-target", parents=[shared], help="compare what a GPU gets with what was predicted for it",
        description=target_arguments.VERIFY,
    )  # fmt: skip
    target_arguments.add_verify(verify)
    return verify


def _add_environments(commands: _Commands) -> Parser:
    env = commands.add_parser(
        "env", help="make an environment with what a pipeline needs", description=environment_arguments.DESCRIPTION
    )
    environment_arguments.add_to(env)
    env.set_defaults(do=("environments", "create"))
    return env


def _add_list(commands: _Commands, shared: argparse.ArgumentParser) -> Parser:
    list_ = commands.add_parser("list", parents=[shared], help="list the runs in the store")
    list_.add_argument("--limit", metavar="N", type=int, default=20, help="at most this many (default: %(default)s)")
    list_.set_defaults(do=("listing", "list_runs"))
    return list_


def _add_show(commands: _Commands, shared: argparse.ArgumentParser) -> Parser:
    show = commands.add_parser("show", parents=[shared], help="show a run, a stage, a kernel or what a line became")
    show.add_argument("run", metavar="RUN", nargs="?", help="run ID or prefix (default: the newest)")
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
    show.add_argument(
        "--target",
        metavar="TARGET",
        choices=sorted(TARGETS),
        help="with --costs: the lower bound of the time on this device (irscope targets), and what limits it (default: the GPU of the run); with --line: what irscope run --target predicted for it",
    )
    show.add_argument(
        "--all", action="store_true", help="with --line, --guards or --costs: print every row, also as JSON"
    )
    show.add_argument("--time", action="store_true", help="where the compile time went: per phase, pass and kernel")
    show.add_argument(
        "--python", metavar="PATH", default=os.environ.get("IRSCOPE_PYTHON") or sys.executable,
        help="interpreter whose compilers make a kernel's assembly, sass and passes (default: %(default)s)",
    )  # fmt: skip
    show.set_defaults(do=("showing", "show"))
    return show


def _add_graph(commands: _Commands, shared: argparse.ArgumentParser) -> Parser:
    graph = commands.add_parser(
        "graph", parents=[shared], help="draw a graph as SVG, PDF, PNG or DOT", description=graph_arguments.DESCRIPTION,
    )  # fmt: skip
    graph_arguments.add_to(graph)
    graph.set_defaults(do=("graphing", "graph"))
    return graph


def _add_report(commands: _Commands, shared: argparse.ArgumentParser) -> Parser:
    report = commands.add_parser(
        "report", parents=[shared], help="write a run as one page of HTML", description=reporting_arguments.DESCRIPTION,
    )  # fmt: skip
    reporting_arguments.add_to(report)
    report.set_defaults(do=("reporting", "report"))
    return report


def _add_explain(commands: _Commands, shared: argparse.ArgumentParser) -> Parser:
    explain = commands.add_parser(
        "explain", parents=[shared], help="why Inductor did what it did", description=_EXPLAIN,
    )  # fmt: skip
    explain.add_argument("run", metavar="RUN", nargs="?", help="run ID or prefix (default: the newest)")
    explain.add_argument(
        "--fusion", metavar=("K1", "K2"), nargs=2, required=True,
        help="two kernels, nodes of the schedule (op3) or nodes of the post-grad graph (mul_1)",
    )  # fmt: skip
    explain.add_argument("--compile", metavar="ID", help="only in this compile")
    explain.set_defaults(do=("explaining", "explain"))
    return explain


def _add_diff(commands: _Commands, shared: argparse.ArgumentParser) -> Parser:
    diff = commands.add_parser(
        "diff", parents=[shared], help="what changed between two runs or two stages", description=_DIFF,
    )  # fmt: skip
    diff.add_argument("runs", metavar="RUN", nargs="*", help="one or two runs (default: the newest)")
    diff.add_argument("--stage", metavar="STAGE", nargs="+", help="one or two stages, by name or id")
    diff.add_argument("--compile", metavar="ID", help="the compile of stages that are named without it")
    diff.add_argument("--text", action="store_true", help="compare graphs as text, too")
    diff.set_defaults(do=("diffing", "diff"))
    return diff


def _add_numbers(
    commands: _Commands, shared: argparse.ArgumentParser, name: str, words: str, description: str
) -> Parser:
    numbers = commands.add_parser(
        name, parents=[shared], help=words, description=description,
    )  # fmt: skip
    numbers.add_argument("script", metavar="SCRIPT", nargs="?", help="the Python script")
    numbers.add_argument("-m", dest="module", metavar="MODULE", help="run a module instead, by its dotted name")
    numbers.add_argument("args", metavar="ARGS", nargs="*", help="its arguments, after --")
    numbers.add_argument("--compile", metavar="ID", help="only in this compile, as in 0/0")
    numbers.add_argument("--call", metavar="N", type=_call, default=1, help="which call (default: the first)")
    numbers.add_argument(
        "--inputs",
        metavar="FILE",
        help="inputs in place of the call's own: a .py file that defines `inputs`, or a dict that torch.save wrote",
    )
    limits.add_flags(numbers, name)
    numbers.add_argument("--cwd", metavar="DIR", help="working folder of the script (default: the current one)")
    numbers.add_argument(
        "--python", metavar="PATH", default=os.environ.get("IRSCOPE_PYTHON") or sys.executable,
        help="interpreter that runs the script (default: %(default)s; variable IRSCOPE_PYTHON)",
    )  # fmt: skip
    if name == "values":
        numbers.add_argument("--stage", metavar="NAME", help="a graph stage by name, as in post-grad-graph")
        numbers.add_argument("--node", metavar="NAME", help="one node, with its first elements and a small picture")
    else:
        numbers.add_argument("--all", action="store_true", help="every node that was compared, matching ones too")
        numbers.add_argument(
            "--reproducer",
            metavar="FILE",
            help="write a standalone script that reproduces the divergence, and run it",
        )
    numbers.set_defaults(do=("values", name), pytest=None, model=None)
    return numbers


def _add_completion(commands: _Commands) -> Parser:
    completion = commands.add_parser(
        "completion", help="print a script that completes irscope's arguments in a shell", description=_COMPLETION
    )
    completion.add_argument("shell", metavar="SHELL", choices=SHELLS, help=" or ".join(SHELLS))
    completion.set_defaults(do=("completing", "completion"))
    return completion


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """What is after the first ``--`` belongs to the script, options included."""
    given = list(arguments)
    if "--" not in given:
        return given, None
    at = given.index("--")
    return given[:at], given[at + 1 :]


def _settle_entry(command: Parser, options: argparse.Namespace) -> None:
    """One of SCRIPT, -m, --pytest and --model; beside the other three a word without a dash is an argument."""
    named = [option for option in (options.module, options.pytest, options.model) if option is not None]
    if not named and options.script is None:
        command.error(
            "the following arguments are required: SCRIPT (or -m MODULE, or --pytest NODE, or --model FILE:EXPR)"
        )
    if len(named) > 1:
        entries = {"-m": options.module, "--pytest": options.pytest, "--model": options.model}
        *first, last = [option for option, given in entries.items() if given is not None]
        command.error(f"{', '.join(first)} and {last}: use only one of them")
    if options.command in ("run", "compare", "profile") and (options.model is None) != (options.inputs is None):
        command.error("--model FILE:EXPR and --inputs FILE:EXPR belong together")
    if named and options.script is not None:
        options.args.insert(0, options.script)
        options.script = None


def _call(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"Invalid call number: {text!r} (the first call is 1)")
    return int(text)
