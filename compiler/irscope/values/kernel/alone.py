"""One kernel of a stored run as a script that times it: its definition from the output code, a launch, and made tensors.

The texts are taken apart and never executed here: they may come from a trace from elsewhere.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from irscope.ir.launches import DTYPES, KernelHead, Launch, Tensor, head_of
from irscope.values.kernel.asking import StoredKernel

SLOW = "as slow as in the run"
"""What the script prints if a launch takes at least half of the time that it took in the run."""
_SIZE = re.compile(r"^\s+([a-z]+\d+(?:_\d+)?) = (-?\d+|[a-z]+\d+(?:_\d+)?)$", re.MULTILINE)
"""A size that depends on inputs, or is an input, and its value in Inductor's own code that times the whole graph."""
_SCRIPT = '''\
"""{name}, alone.  Made by irscope: times a launch{exits}."""

{head}
from torch._dynamo.testing import rand_strided
from torch._inductor.runtime.benchmarking import benchmarker

{made}


def launch():
    {call}


launch()  # compiles it
seconds = benchmarker.benchmark_{device}(launch) / 1e3
{verdict}'''
_TELLS = 'print(f"{name}: {{seconds * 1e6:.4g}} us a launch")\n'
_COMPARES = """\
SECONDS = {seconds!r}  # of a launch in the run
told = "{slow}" if seconds >= SECONDS / 2 else "faster than in the run"
print(f"{name}: {{seconds * 1e6:.4g}} us a launch, {{SECONDS * 1e6:.4g}} us in the run: {{told}}")
raise SystemExit(seconds >= SECONDS / 2)
"""


def timing_script(stored: StoredKernel, seconds: float | None) -> str:
    """The text of the script.

    Args:
        seconds: Of a launch in the run; None: they were not measured, and the script always exits with 0.

    Raises LookupError if the output code does not have the form of an argument.
    """
    head = head_of(stored.text, stored.kernel.name)
    on_gpu = head.heuristic != "cpp"
    others = re.findall(r"= empty_strided_(?!cpu\b)(\w+)\(\(", stored.code)
    made, given = _arguments(
        stored.code, stored.launches[0], head, "cpu" if not on_gpu else others[0] if others else "cuda"
    )
    run, stream = (".run", ", stream=get_raw_stream(0)") if on_gpu else ("", "")
    call = f"{stored.kernel.name}{run}({', '.join(given)}{stream})"
    told = {"name": stored.kernel.name, "seconds": seconds, "slow": SLOW}
    return _SCRIPT.format(
        **told, head=_head(stored.code, stored.kernel.name), call=call, device="gpu" if on_gpu else "cpu",
        made="\n".join([*_sizes(stored.code, "\n".join([*made, call])), *made]),
        verdict=(_TELLS if seconds is None else _COMPARES).format(**told),
        exits="" if seconds is None else ", and exits with 1 if it takes at least half of the time of the run",
    )  # fmt: skip


def _arguments(code: str, launch: Launch, head: KernelHead, device: str) -> tuple[list[str], list[str]]:
    """The lines that make the tensors of a launch, and its arguments."""
    names, made, given = dict[tuple[Any, ...], str](), list[str](), list[str]()
    parameters = [*head.named(launch.arguments, dict.fromkeys(head.blocks))[0], *[""] * len(launch.arguments)]
    for parameter, argument in zip(parameters, launch.arguments, strict=False):
        kind = str(head.signature.get(parameter, "*"))
        if not isinstance(argument, Tensor):
            given.append(str(argument))
        elif not kind.startswith("*"):  # the graph's input that is a size
            given.append(argument.memory)
        elif argument.shape is None:  # in what Inductor writes to time the whole graph
            line = re.search(rf"^\s+({re.escape(argument.memory)} = rand_strided\(.*\))$", code, re.MULTILINE)
            if line is None:
                raise LookupError(f"The output code does not have the shape of {argument.name or parameter}.")
            made += [line[1]] if line[1] not in made else []
            given.append(argument.memory)
        else:
            dtype = argument.dtype or DTYPES.get(kind.lstrip("*"), "float32")
            form = (argument.memory, argument.shape, argument.strides, dtype)
            if form not in names:
                names[form] = f"{argument.memory}_{len(names)}"
                sizes = ", ".join(f"({''.join(f'{each}, ' for each in part)})" for part in form[1:3])
                made.append(f'{names[form]} = rand_strided({sizes}, torch.{dtype}, "{device}")')
            given.append(names[form])
    return made, given


def _head(code: str, kernel: str) -> str:
    """What the output code has before its functions, without the other kernels."""
    kept = []
    for statement in ast.parse(code).body:
        if isinstance(statement, ast.ClassDef | ast.FunctionDef):
            break
        text = ast.get_source_segment(code, statement) or ""
        if not re.match(rf"(?!{re.escape(kernel)}\b)\w+ = async_compile\.", text):
            kept.append(text)
    return "\n".join(kept)


def _sizes(code: str, used: str) -> list[str]:
    """Assignments of the sizes that a text uses.  Raises LookupError if the code does not have one's value."""
    values = dict(_SIZE.findall(code))
    found = []
    for name in sorted(set(re.findall(r"\b[a-z]+\d+(?:_\d+)?\b", used))):
        if name not in values and not re.match(r"(?:s|u|ks)\d", name):
            continue
        value, seen = values.get(name, ""), {name}
        while value in values and value not in seen:
            seen.add(value)
            value = values[value]
        if not re.fullmatch(r"-?\d+", value):
            raise LookupError(f"The output code does not have the value of the size {name}.")
        found.append(f"{name} = {value}")
    return found
