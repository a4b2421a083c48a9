"""Whether two texts of a script of `fix_set` compute the same: a stronger test than the proof of `irscope fix`.

Both are executed without ``torch.compile``, which is replaced by what changes nothing: what the compiler makes of a text
is the subject of other tests.  Scripts of `unseen_set` are run as a whole instead, the changed one compiled, too.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import json
import math
import multiprocessing
import random
import subprocess
import sys
import types
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

SEEDS = (0, 1, 2, 17)
SIZES = (8, 5, 2, 13)
SCALES = (1.0, -1.0, 30.0, 1e-3, 0.0)
TOLERANCES = {torch.float32: (1e-5, 1e-6), torch.float64: (1e-9, 1e-11)}


def differences(old: str, new: str, scales: Sequence[float] = SCALES) -> str:
    """The first difference in words; empty if there is none.

    A call of the original that gives something else each time, as by a seed of the clock, says nothing of a change.
    """
    if old == new:
        return ""
    with without_compile():
        first = loaded(old)
    known = {case: outcome(first, *case) for case in cases(scales)}
    unsteady = {case for case in cases(scales) if compared(known[case], outcome(first, *case))}
    with without_compile():
        second = loaded(new)  # only now: it may change a library, for both
    for case in cases(scales):
        found = outcome(second, *case)  # always: a module may count its calls
        words = "" if case in unsteady else compared(known[case], found)
        if words:
            dtype, training, seed, size, scale = case
            return f"{dtype}, training {training}, seed {seed}, size {size}, times {scale}: {words}"
    return ""


def differences_apart(old: str, new: str) -> str:
    """The same in a process of its own, for texts that may change a library; at one scale, since models take long."""
    if old == new:
        return ""
    command = [sys.executable, __file__]
    ran = subprocess.run(
        command, input=json.dumps([old, new]), capture_output=True, text=True, timeout=900, check=False
    )
    return json.loads(ran.stdout.splitlines()[-1]) if ran.returncode == 0 else f"it fails: {ran.stderr[-300:]}"


def differences_of_runs(old: str, new: str) -> str:
    """The first difference in what whole scripts print, and in what their names stand for at the end; empty if there is
    none.  What differs from run to run of the original is not compared."""
    if old == new:
        return ""
    first, again = ran_apart(old, "plain"), ran_apart(old, "plain", 2)
    for how in ("plain", "compiled"):
        second = ran_apart(new, how)
        for name, value in first.items():
            if alike(again.get(name), value) and not alike(second.get(name), value):
                return f"{how}: {name} is {str(second.get(name))[:200]}, and was {str(value)[:200]}"
    return ""


def alike(value: Any, other: Any) -> bool:
    """Whether two values of JSON are the same; numbers within the tolerance of float32."""
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(alike, value, other))
    if isinstance(value, float) and isinstance(other, float):
        return math.isclose(value, other, rel_tol=1e-4, abs_tol=1e-5) or (math.isnan(value) and math.isnan(other))
    return type(value) is type(other) and value == other


@functools.cache
def ran_apart(text: str, how: str, number: int = 1) -> dict[str, Any]:
    """What a script prints and leaves behind, run in a process of its own: a fork, since torch takes long to import.

    Args:
        number: Of the run, since each is made once.
    """
    importlib.import_module("torch._dynamo.backends.debugging")
    processes = multiprocessing.get_context("fork")
    receiver, sender = processes.Pipe(duplex=False)
    process = processes.Process(target=lambda: sender.send(left_behind(text, how)))
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(300) else {"error": "it takes too long"}
    except EOFError:
        return {"error": "it fails"}
    finally:
        process.kill()


def left_behind(text: str, how: str) -> dict[str, Any]:
    """What a script prints, and all values that its names reach at the end, by path; compiled for ``aot_eager``."""
    compile, printed = torch.compile, io.StringIO()
    torch.compile = functools.partial(compile, backend="aot_eager") if how == "compiled" else torch.compile
    with contextlib.nullcontext() if how == "compiled" else without_compile(), contextlib.redirect_stdout(printed):
        script = loaded(text)
    found: dict[str, Any] = {
        "what it prints": printed.getvalue(),
        "random numbers": [random.random(), *torch.rand(2).tolist()],
    }
    for name, value in script.items():
        if not isinstance(value, (type, types.ModuleType, types.FunctionType)) and not name.startswith("__"):
            found.update(reached(value, name, set()))
    return found


def reached(value: Any, path: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """The numbers, texts and tensors that a value is made of, by path."""
    if isinstance(value, (bool, int, float, str, type(None))):
        yield path, value
    elif isinstance(value, torch.Tensor):
        yield path, [str(value.dtype), value.requires_grad, value.detach().double().tolist()]
        if value.is_leaf and value.grad is not None:
            yield from reached(value.grad, f"{path}.grad", seen)
    elif id(value) not in seen:
        seen.add(id(value))
        parts = vars(value) if type(value).__module__ == "fixture" else {}
        if isinstance(value, (list, tuple, set)):
            parts = dict(enumerate(value))
        elif isinstance(value, dict):
            parts = value
        elif isinstance(value, torch.nn.Module):
            parts = {k: v for k, v in vars(getattr(value, "_orig_mod", value)).items() if "hook" not in k}
        elif isinstance(value, torch.optim.Optimizer):
            parts = {"state": list(value.state.values()), "groups": value.param_groups}
        for name, part in list(parts.items()):
            yield from reached(part, f"{path}.{name}", seen)


def cases(scales: Sequence[float]) -> Iterator[tuple[torch.dtype, bool, int, int, float]]:
    for dtype in (torch.float32, torch.float64):
        for training in (True, False):
            for seed in SEEDS:
                for size in SIZES if seed == 0 else SIZES[:1]:
                    for scale in scales:
                        yield dtype, training, seed, size, scale


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield


@contextlib.contextmanager
def without_compile() -> Iterator[None]:
    """Only while a text is loaded: operators such as torch.cond compile by themselves when they are called."""
    compile = torch.compile
    torch.compile = lambda model=None, **options: model if model is not None else (lambda function: function)
    try:
        yield
    finally:
        torch.compile = compile


def loaded(text: str) -> dict[str, Any]:
    module = sys.modules["fixture"] = types.ModuleType("fixture")  # dataclasses look for it there
    exec(compile(text, "fixture.py", "exec"), module.__dict__)
    return module.__dict__


def compared(old: Any, new: Any) -> str:
    """How two outcomes differ; empty if they do not."""
    if isinstance(old, Exception) or isinstance(new, Exception):
        if isinstance(old, Exception) and isinstance(new, Exception):
            return ""  # an assertion may become another error, but stays one
        return f"it raises {type(old if isinstance(old, Exception) else new).__name__} in one of them"
    if len(old) != len(new):
        return "another number of results"
    for number, (a, b) in enumerate(zip(old, new, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"value {number}: {a.dtype} {tuple(a.shape)} and {b.dtype} {tuple(b.shape)}"
        if a.dtype is torch.bool and not torch.equal(a, b):
            return f"value {number} is {a.tolist()} and {b.tolist()} (the last says where there are no gradients)"
        rtol, atol = TOLERANCES.get(a.dtype, (0.0, 0.0))
        if not torch.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True):
            return f"value {number} differs by up to {(a - b).abs().max().item():.3g}"
    return ""


def outcome(script: dict[str, Any], dtype: torch.dtype, training: bool, seed: int, size: int, scale: float) -> Any:
    """The tensors that a call gives, changes, and derives; or the error that it raises."""
    with quiet():
        return called(script, dtype, training, seed, size, scale)


def called(script: dict[str, Any], dtype: torch.dtype, training: bool, seed: int, size: int, scale: float) -> Any:
    target = script["target"]
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)
    arguments = scaled(script["make"](size, dtype), scale)
    if isinstance(target, torch.nn.Module):
        target = target.to(dtype).train(training)
    try:
        return derived(target, arguments)
    except Exception as error:  # noqa: BLE001  whatever it raises is what it does
        return error


def derived(target: Any, arguments: Any) -> list[torch.Tensor]:
    """Results, arguments after the call, the next random numbers, gradients, and which of these there are.

    Raises what the call or its backward raises.
    """
    values = list(tensors(target(*arguments)))
    found = [*values, *tensors(arguments), torch.rand(3)]
    inputs = [one for one in tensors(arguments) if one.requires_grad]
    if isinstance(target, torch.nn.Module):
        inputs += list(target.parameters())
    outputs = [one.sum() for one in values if one.requires_grad]
    if inputs and outputs:
        gradients = torch.autograd.grad(sum(outputs), inputs, allow_unused=True)
        found += [torch.zeros_like(i) if g is None else g for i, g in zip(inputs, gradients, strict=True)]
        found.append(torch.tensor([g is None for g in gradients]))  # an optimizer acts on zeros, but not on None
    return [one.detach().clone() for one in found]


def scaled(value: Any, scale: float) -> Any:
    if isinstance(value, torch.Tensor):
        if not value.is_floating_point():
            return value
        return (value.detach() * scale).requires_grad_(value.requires_grad)
    if isinstance(value, (tuple, list)):
        return type(value)(scaled(one, scale) for one in value)
    return {name: scaled(one, scale) for name, one in value.items()} if isinstance(value, dict) else value


def tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, bool):
        yield torch.tensor(value)
    elif isinstance(value, (int, float)):
        yield torch.tensor(float(value))
    elif isinstance(value, (tuple, list, dict)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from tensors(one)


if __name__ == "__main__":
    torch.set_num_threads(1)
    before, after = json.load(sys.stdin)
    print(json.dumps(differences(before, after, scales=SCALES[:1])))
