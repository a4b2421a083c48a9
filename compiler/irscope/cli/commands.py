"""The commands of ``irscope``: one row for each.

To add a command, add a row here and the two functions that it names.  Both are imported only when the command is asked
for: none needs what the others do, and each import delays the start of the script.  `scripts/generate.py` writes the
completion scripts from these rows.
"""

from __future__ import annotations

from irscope.vocabulary.records import dataclass


@dataclass(frozen=True)
class Command:
    """What the list of commands says about a command, and where its arguments are."""

    help: str
    """In the list of commands."""
    adder: str
    """``module:function`` in this package: adds the arguments to a `Parser`, sets its description, and the default
    ``do``, which is the module and the function that carry the command out.  Empty: the arguments are not ours."""
    runs_script: bool = False
    """Whether it runs a script, which has arguments of its own after ``--``."""


COMMANDS = {
    "run": Command("run a script and show what was compiled", "run_arguments:add_to", runs_script=True),
    "check": Command("fail if a script has graph breaks or recompilations", "check_arguments:add_to", runs_script=True),
    "pipelines": Command("list the pipelines, and which of them work here", "pipeline_arguments:add_to"),
    "targets": Command("list the devices that are known, and their figures", "target_arguments:add_targets"),
    "verify-target": Command(
        "compare what a GPU gets with what was predicted for it", "target_arguments:add_verify", runs_script=True
    ),
    "env": Command("make an environment with what a pipeline needs", "environment_arguments:add_to"),
    "fix": Command(
        "try the fixes of a script's findings, and apply those that are verified",
        "fix_arguments:add_to",
        runs_script=True,
    ),
    "tune": Command(
        "find what makes a script faster: try, check and measure changes", "tune_arguments:add_to", runs_script=True
    ),
    "compare": Command(
        "run a script through several pipelines and compare them", "compare_arguments:add_to", runs_script=True
    ),
    "profile": Command("measure what each line of a script costs", "profile_arguments:add_to", runs_script=True),
    "open": Command("open a trace that was recorded elsewhere", "opening_arguments:add_to"),
    "list": Command("list the runs in the store", "store_arguments:add_list"),
    "show": Command("show a run, a stage, a kernel or what a line became", "store_arguments:add_show"),
    "graph": Command("draw a graph as SVG, PDF, PNG or DOT", "graph_arguments:add_to"),
    "report": Command("write a run as one page of HTML", "reporting_arguments:add_to"),
    "repro": Command(
        "write the smallest script that shows an error, a wrong number or a slow kernel", "reproducing:add_to"
    ),
    "explain": Command("why Inductor did what it did", "store_arguments:add_explain"),
    "diff": Command(
        "what changed between two runs, two stages or two versions", "store_arguments:add_diff", runs_script=True
    ),
    "why-miss": Command("which part of a cache key changed between two runs", "store_arguments:add_why_miss"),
    "view": Command("the runs, stages and panels in a web browser", ""),
    "attach": Command("what each rank of a job that hangs is doing, and which is missing", "attach_arguments:add_to"),
    "mcp": Command("serve agents: tools over MCP", "agent_arguments:add_options"),
    "values": Command(
        "show what each node of a compiled graph computes", "value_arguments:add_values", runs_script=True
    ),
    "diverge": Command(
        "find where compiled code computes a different number", "value_arguments:add_diverge", runs_script=True
    ),
    "kernel": Command("run one Triton kernel without a GPU, and check it", "kernel_arguments:add_to"),
    "watch": Command(
        "find the step, the line and the node of the first NaN", "value_arguments:add_watch", runs_script=True
    ),
    "completion": Command("print a script that completes irscope's arguments in a shell", "completing:add_to"),
}

RUNS = tuple(name for name, command in COMMANDS.items() if command.runs_script)
