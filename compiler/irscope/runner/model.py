"""Compiles a model that the command line names, and calls it: ``irscope run --model FILE:EXPR --inputs FILE:EXPR``."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from irscope.protocol import ModelCall
from irscope.runner import on_cpu
from irscope.runner.script import OnEnd, ScriptFailure, main_module, read_code, run_main


def run_model(path: str, call: ModelCall, args: Sequence[str], on_end: OnEnd) -> ScriptFailure | None:
    """Makes the model and its inputs, passes the model to ``torch.compile`` and calls it once.

    The files are imported and not run as scripts: what is below ``if __name__ == "__main__":`` is left out.  The
    expressions come from the user's own command line, so they may do anything.

    Args:
        path: Absolute path of the model's file.

    For the rest see `irscope.runner.script.run_as_main`.
    """
    sys.argv = [path, *on_cpu.arguments(args)]
    main_module(None)

    def execute() -> None:
        of_model = _imported(path)
        of_inputs = of_model if call.inputs_file == path else _imported(call.inputs_file)
        model = _callable_model(_evaluated(call.model, "--model", of_model), call.model)
        positional, named = arguments_of(_evaluated(call.inputs, "--inputs", of_inputs))
        torch: Any = importlib.import_module("torch")
        torch.compile(model)(*positional, **named)

    return run_main(execute, path, on_end, lambda stop: f"{path} ended with sys.exit({stop.code!r})")


def arguments_of(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Inputs as a call takes them: a tuple or list by position, a mapping by name, anything else as one argument."""
    if isinstance(inputs, (tuple, list)):
        return tuple(inputs), {}
    if isinstance(inputs, Mapping):
        return (), {str(name): value for name, value in inputs.items()}
    return (inputs,), {}


def _callable_model(model: Any, expression: str) -> Any:
    """Raises TypeError for what cannot be the model: a class, which a call would only make an object of, or no callable."""
    if isinstance(model, type):
        raise TypeError(f"--model {expression} is a class. Write {expression}(…), which makes a module.")
    if not callable(model):
        raise TypeError(f"--model {expression} is an object of {type(model).__name__}, not a module or a function.")
    return model


def _imported(path: str) -> dict[str, Any]:
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(name, module)  # classes are looked up there; a module that exists keeps its name
    exec(on_cpu.compiled(read_code(path), path), module.__dict__)
    return module.__dict__


def _evaluated(expression: str, option: str, namespace: dict[str, Any]) -> Any:
    return eval(compile(expression.strip(), f"<{option}>", "eval", dont_inherit=True), namespace)
