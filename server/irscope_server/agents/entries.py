"""What is run, and the rarer options of the command that runs it, which are named as on the command line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from irscope_server.agents.answers import ToolFailure
from irscope_server.agents.commands import option, word

_LIMITS = ("memory-budget", "output-budget", "steady-calls", "cwd")
_BASELINES = ("baseline", "write-baseline", "severity")
_ENTRIES = ("pytest", "model", "inputs")
_TORCHRUN = (
    "nnodes", "node-rank", "master-addr", "master-port", "rdzv-backend", "rdzv-endpoint", "rdzv-id", "rdzv-conf", "max-restarts",
)  # fmt: skip
OPTIONS = {
    "run": ("fake", "tuned", "config", "no-machine-code", "no-symbolic-trace", *_LIMITS, *_BASELINES, *_TORCHRUN),
    "check": (*_LIMITS, *_BASELINES, "format", "output"),
    "verify-target": ("predicted", "untuned"),
    "compare": (*_ENTRIES, "rounds", "cwd"),
    "diff": ("output",),
    "values": ("cwd",),
    "diverge": ("cwd", "all"),
    "fix": ("cwd",),
    "tune": ("cwd", "only"),
    "profile": (*_ENTRIES, "cwd", "all"),
    "report": ("redact", "no-pictures"),
    "graph": ("node", "around", "depth", "max-nodes", "theme", "timeout"),
}
"""Options that a client may give, by command.  What they mean and take is for the command line to say."""
FLAGS = ("fake", "no-machine-code", "no-symbolic-trace", "untuned", "all", "no-pictures")
"""The flags that take no value."""
_GIVEN = re.compile(r"([a-z][a-z-]{1,30})(?:=(.*))?", re.DOTALL)


def more(command: str, given: Sequence[str] | None) -> list[str]:
    """Options as a client writes them, ``fake`` and ``severity=GB0059=off``, for a command.  Raises ToolFailure."""
    found = []
    for one in given or ():
        match = _GIVEN.fullmatch(one)
        name, value = (match[1], match[2]) if match else ("", None)
        if name not in OPTIONS[command]:
            known = ", ".join(each if each in FLAGS else f"{each}=…" for each in OPTIONS[command])
            raise ToolFailure(f"Invalid option. irscope {command} takes these here: {known}.")
        if (name in FLAGS) != (value is None or value == ""):
            raise ToolFailure(f"The option {name} takes {'no' if name in FLAGS else 'a'} value.")
        found += [f"--{name}"] if name in FLAGS else option(f"--{name}", value or "")
    return found


def entry(script: str = "", module: str = "", pytest: str = "", model: str = "", inputs: str = "") -> list[str]:
    """What is at the beginning of a run, as the command line has it: just one of the first four.

    Args:
        module: By its dotted name.
        model, inputs: Each FILE:EXPR, and only together.

    Raises ToolFailure, also if there is none.
    """
    one = [
        name for name, value in {"script": script, "module": module, "pytest": pytest, "model": model}.items() if value
    ]
    if len(one) != 1:
        raise ToolFailure("What is to be run? Give a script or a module, and not both.")
    if bool(model) != bool(inputs):
        raise ToolFailure('model and inputs belong together, each FILE:EXPR, as in model="net.py:Net()".')
    if module:
        return ["-m", word(module, "module")]
    if script:
        return [word(script, "script")]
    return [*option("--pytest", pytest), *option("--model", model), *option("--inputs", inputs)]
