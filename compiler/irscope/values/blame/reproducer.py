"""A separate script that shows a divergence: the smallest part of the graph that was seen to differ.

Its inputs are random numbers of the same shapes, strides and dtypes where the part differs with those, too; else those of
the run, in a file beside it that is loaded with ``weights_only=True``.  Whether it fails on its own is found out by running
it in a fresh process (`proven`); what makes the numbers wrong may be in the user's script alone.
"""

from __future__ import annotations

import ast
import dataclasses
import json
import os
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from irscope.usercode.beside import Content, Copy
from irscope.usercode.writing import write_files
from irscope.values.blame.locating import differing
from irscope.values.check.measuring import Measure
from irscope.values.check.tolerance import RTOL
from irscope.values.run.subgraph_compile import Region
from irscope.vocabulary.records import dataclass

DIFFERS = "compiled code differs from eager mode"
"""What the script prints where it shows it."""
INPUTS = "inputs.pt"
"""Stands for the file of inputs in the text of a reproducer, until it is written somewhere."""
_OURS = ("provenance_tracking", "fx_graph_cache", "fx_graph_remote_cache")


@dataclass
class Reproducer:
    """The text of a script and the inputs that it loads (None: it makes them)."""

    text: str
    inputs: list[Any] | None


def reproducer_of(
    region: Region, measure: Measure | None, message: str, settings: str, config: Mapping[str, Any]
) -> Reproducer | None:
    """A reproducer of a part that differs with the inputs of the run; None if it cannot be written as text."""
    torch: Any = sys.modules["torch"]
    if any(node.op == "get_attr" for node in region.module.graph.nodes):
        return None
    specs = [_random_spec(tensor) for tensor in region.inputs]
    torch.manual_seed(0)
    random = dataclasses.replace(region, inputs=[_random(torch, spec) for spec in specs])
    try:
        at = differing(random, config, None)
    except Exception:  # noqa: BLE001  then with the inputs of the run
        at = None
    if at is not None and at.local is not None:
        measure = at.local
    made = ",\n".join(f"        random_like({', '.join(map(repr, spec))})" for spec in specs)
    if at is not None:
        inputs = f"    torch.manual_seed(0)\n    return [\n{made},\n    ]" if specs else "    return []"
        inputs = f"{_RANDOM}\n\ndef inputs():\n{inputs}\n"
    else:
        inputs = _LOADED
    allowed = measure.allowed if measure is not None else 0.0
    own = _PART.format(outputs=repr(region.outputs))
    text = _script(region, message, settings, "a part of a graph with Inductor", repr(allowed), inputs + own)
    return Reproducer(text, None if at is not None else _on_cpu(region.inputs)) if text is not None else None


def reproducer_of_step(region: Region, message: str, settings: str) -> Reproducer | None:
    """A reproducer of a step between graphs: the node of the dynamo graph is compiled as its own function, with its
    gradients, on the inputs of the run."""
    text = _script(region, message, settings, "one operation with its gradients", _BY_SIZE, _LOADED + _STEP)
    return Reproducer(text, _on_cpu(region.inputs)) if text is not None else None


def _script(region: Region, message: str, settings: str, what: str, allowed: str, own: str) -> str | None:
    """The text of a reproducer; None if the part cannot be written as text.

    Args:
        what: Is compiled.
        allowed: An expression for the difference that is normal in any case, where the result is a rounded number.
        own: Its functions ``inputs()`` and ``results(given)``: what the results are called, those of compiled code and
            those of eager mode.
    """
    torch: Any = sys.modules["torch"]
    names = [node.name for node in region.module.graph.nodes if node.op == "placeholder"]
    body = _code(region.module, names)
    if body is None:
        return None
    return _SCRIPT.format(
        message=textwrap.fill(re.sub(r'[\\"]', "'", message), 110), torch=torch.__version__, what=what,
        settings=_settings(settings), rtol=repr(RTOL), parameters=", ".join(names), body=body, own=own, allowed=allowed, differs=DIFFERS,
    )  # fmt: skip


def _on_cpu(tensors: Sequence[Any]) -> list[Any]:
    return [tensor.detach().cpu().clone() for tensor in tensors]


def _random_spec(tensor: Any) -> tuple[Any, ...]:
    """Shape, strides, dtype, device, and what its numbers are like: mean and deviation, or the smallest and largest."""
    dtype = str(tensor.dtype)
    head = (tuple(tensor.shape), tuple(tensor.stride()), dtype, str(tensor.device))
    if tensor.dtype.is_floating_point:
        wide = tensor.double()
        wide = wide[wide.isfinite()]
        mean, deviation = (float(wide.mean()), float(wide.std(correction=0))) if wide.numel() else (0.0, 1.0)
        return (*head, float(f"{mean:.3g}"), float(f"{deviation or 1.0:.3g}"))
    if tensor.dtype.is_complex or not tensor.numel():
        return (*head, 0, 1)
    return (*head, int(tensor.min()), int(tensor.max()))


def _random(torch: Any, spec: tuple[Any, ...]) -> Any:
    space: dict[str, Any] = {"torch": torch}
    exec(_RANDOM, space)  # the very function that the script has
    return space["random_like"](*spec)


_RANDOM = '''\
def random_like(shape, stride, dtype, device, low, high):
    """Numbers like those of the run: of mean `low` and deviation `high`, or whole numbers from `low` to `high`."""
    dtype = getattr(torch, dtype.removeprefix("torch."))
    tensor = torch.empty_strided(shape, stride, dtype=dtype, device=device)
    if dtype.is_floating_point:
        values = torch.randn(shape, dtype=torch.float64) * high + low
    else:
        values = torch.randint(low, high + 1, shape)
    if 0 in [step for step, size in zip(stride, shape) if size > 1]:  # elements that share memory
        return values.to(dtype).to(device)
    return tensor.copy_(values)
'''

_LOADED = f'''\
def inputs():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "{INPUTS}")
    return torch.load(path, weights_only=True)
'''

_PART = """

def results(given):
    graph = torch.fx.symbolic_trace(part)
    with torch.no_grad():
        eager = part(*[each.clone() for each in given])
        compiled = compile_fx_inner(graph, given)([each.clone() for each in given])
    return {outputs}, compiled, eager
"""

_BY_SIZE = "rtol * float(expected.detach().double().square().mean().sqrt())"
_STEP = '''

def results(given):
    compiled, eager = with_gradients(torch.compile(part), given), with_gradients(part, given)
    return [f"result {number}" for number in range(len(eager))], compiled, eager


def with_gradients(function, given):
    """What a function returns, and the gradients of its inputs."""
    given = [each.clone().requires_grad_(each.is_floating_point()) for each in given]
    torch.manual_seed(0)
    found = [each for each in function(*given) if isinstance(each, torch.Tensor)]
    last = [each for each in found if each.requires_grad]
    torch.manual_seed(1)
    torch.autograd.backward(last, [torch.randn_like(each) for each in last])
    return [*found, *(each.grad for each in given if each.grad is not None)]
'''

_SCRIPT = '''\
"""{message}

Made by irscope for torch {torch}. Compiles {what}, compares it with eager mode, and exits with 1
where the two differ by more than is normal for its operations and dtypes.
"""

import os
import sys

import torch
import torch._inductor.config
from torch import device, inf, nan
from torch._inductor.compile_fx import compile_fx_inner

torch._inductor.config.fx_graph_cache = torch._inductor.config.fx_graph_remote_cache = False
{settings}
RTOL = {rtol}


def part({parameters}):
{body}


{own}

def main():
    failed = False
    for name, got, expected in zip(*results(inputs()), strict=True):
        try:
            rtol = RTOL.get(str(expected.dtype).removeprefix("torch."), 0)
            atol = {allowed} if rtol else 0
            torch.testing.assert_close(got, expected, rtol=rtol, atol=atol, equal_nan=True, check_stride=False)
        except AssertionError as error:
            failed = True
            print(f"{{name}}: compiled code differs from eager mode.\\n{{error}}\\n")
    if not failed:
        print("Compiled code and eager mode agree.")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
'''


def _code(module: Any, names: list[str]) -> str | None:
    """The body of a function that computes the graph; None if it is not Python that stands for itself."""
    text = module.graph.python_code("self").src
    match = re.search(r"def forward\(self[^\n]*\):\n(?P<body>.*)\Z", text, re.DOTALL)
    if match is None:
        return None
    lines = [re.sub(r";\s+(\w+ = )+None.*$", "", line) for line in match["body"].rstrip().split("\n")]
    lines = [re.sub(r"^(\s+\w+) : .*? = ", r"\1 = ", line) for line in lines if not line.lstrip().startswith("#")]
    lines = [line for line in lines if line.strip() and not re.fullmatch(r"\s*(\w+ = )+None.*", line)]
    body = "\n".join(lines)
    try:
        tree = ast.parse(f"def part({', '.join(names)}):\n{body}")
    except SyntaxError:
        return None
    known = {"torch", "device", "inf", "nan", *names}
    assigned = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    used = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}
    return body if used <= known | assigned else None


def _settings(text: str) -> str:
    """Inductor's settings that are not the usual ones, as lines of Python; those of ours are left out."""
    lines = []
    for line in text.split("\n"):
        if not line.startswith("torch._inductor.config.") or any(name in line for name in _OURS):
            continue
        try:
            value = ast.literal_eval(line.partition(" = ")[2])
        except (ValueError, SyntaxError):  # a function or an object: the script's own
            continue
        lines.append(f"{line.partition(' = ')[0]} = {value!r}")
    return "\n".join(lines)


def write_reproducer(path: str, reproducer: Mapping[str, Any], folder: str) -> None:
    """Writes a reproducer, as it is in the data of a stage ``divergence``, with its inputs beside it.

    ``folder``: the run's folder of values.  Raises WriteError.
    """
    text, inputs = str(reproducer["script"]), str(reproducer["inputs"])
    contents: dict[str, Content] = {}
    if inputs:
        beside = os.path.splitext(path)[0] + ".pt"
        contents[beside] = Copy(os.path.join(folder, os.path.basename(inputs)))
        text = text.replace(f'"{INPUTS}"', json.dumps(os.path.basename(beside)))
    write_files({**contents, path: text.encode("utf-8", "backslashreplace")})


@dataclass(frozen=True)
class Proof:
    """What a reproducer did in a fresh process: it fails on its own where ``failed``."""

    failed: bool
    output: str


def proven(path: str, python: str, environment: Mapping[str, str], said: str = DIFFERS, seconds: float = 600) -> Proof:
    """Runs a reproducer by itself; ``said`` is what it prints where it shows what it should, empty: it cannot."""
    import subprocess  # not where a script runs: this module is imported there, too

    from irscope.system.commands import run_bounded

    try:
        done = run_bounded([python, path], seconds, env=environment)
    except subprocess.TimeoutExpired:
        return Proof(False, f"It did not end within {seconds:.0f} s.")
    except OSError as error:
        return Proof(False, str(error))
    own = done.returncode == 1 and bool(said) and said in done.stdout + done.stderr
    return Proof(own, done.stdout if done.returncode == 0 else done.stdout + done.stderr)
