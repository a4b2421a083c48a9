"""A Triton kernel of the user's that a script launches itself: the script runs by Triton's interpreter up to that launch.

The text of the kernel is the user's file with all else left blank, so that its lines are the user's.
"""

from __future__ import annotations

import ast
import inspect
import os
import runpy
import sys
from collections.abc import Mapping
from typing import Any

from irscope.values.kernel.memory import Region


class _Reached(BaseException):
    """The script launches the kernel; no handler of the script's catches this."""

    def __init__(self, function: Any, grid: Any, named: dict[str, Any]) -> None:
        super().__init__()
        self.function, self.grid, self.named = function, grid, named


def launch_of(request: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Region]]:
    """Runs the script in this process up to the launch; the request for it, and the memory of its tensors.

    Raises LookupError with a sentence if the script does not come to the launch.
    """
    try:
        _stop_at(request["kernel"], request["launch"])
        sys.argv[:] = [request["script"], *request["argv"]]
        sys.path.insert(0, os.path.dirname(request["script"]))
        runpy.run_path(request["script"], run_name="__main__")
    except _Reached as found:
        reached = found
    except SystemExit:
        raise LookupError(f"The script ended before launch {request['launch']} of {request['kernel']}.") from None
    except Exception as error:  # noqa: BLE001  the script's own failure
        said = (str(error).splitlines() or [""])[0][:300]
        raise LookupError(
            f"The script failed before launch {request['launch']} of {request['kernel']}: {type(error).__name__}: {said}"
        ) from None
    else:
        raise LookupError(f"The script does not come to launch {request['launch']} of {request['kernel']}.")
    file = inspect.getsourcefile(reached.function) or request["script"]
    with open(file, encoding="utf-8") as source:
        text = kernels_alone(source.read())
    blocks, arguments, given = {}, list[Any](), dict[str, Region]()
    constants = _compile_time(reached.function)
    for name, value in reached.named.items():
        if name in constants:
            blocks[name] = value
        else:
            arguments.append(_tensor(name, value, given) if hasattr(value, "untyped_storage") else value)
    grid = reached.grid(dict(reached.named)) if callable(reached.grid) else reached.grid
    sizes = [int(each) for each in (grid if isinstance(grid, tuple | list) else (grid,))]
    return {**request, "text": text, "file": file, "arguments": arguments, "blocks": blocks, "grid": sizes}, given


def _stop_at(name: str, launch: int) -> None:
    from triton.runtime import autotuner, interpreter

    plain, seen = interpreter.InterpretedFunction.run, 0

    def run(self: Any, *arguments: Any, grid: Any, warmup: bool, **named: Any) -> Any:
        nonlocal seen
        function = self.fn
        seen += function.__name__ == name
        if function.__name__ == name and seen == launch:
            signature = inspect.signature(function)
            bound = signature.bind(
                *arguments, **{each: value for each, value in named.items() if each in signature.parameters}
            )
            bound.apply_defaults()
            raise _Reached(function, grid, dict(bound.arguments))
        return plain(self, *arguments, grid=grid, warmup=warmup, **named)

    def untuned(self: Any, *arguments: Any, **named: Any) -> Any:  # timing needs a GPU
        return self.fn.run(*arguments, **{**self.configs[0].all_kwargs(), **named})

    setattr(autotuner.Autotuner, "run", untuned)  # noqa: B010  as for `Libdevice`, in this process alone
    setattr(interpreter.InterpretedFunction, "run", run)  # noqa: B010


def _compile_time(function: Any) -> set[str]:
    return {
        name for name, each in inspect.signature(function).parameters.items() if "constexpr" in str(each.annotation)
    }


def _tensor(name: str, value: Any, given: dict[str, Region]) -> dict[str, Any]:
    """A tensor as an argument; its memory is copied once, however many tensors share it."""
    import numpy as np
    import torch

    storage = value.untyped_storage()
    memory = f"memory {storage.data_ptr()}"
    if memory not in given:
        copy = torch.empty(0, dtype=torch.uint8).set_(storage).clone()
        count = max(copy.numel() // value.element_size(), 1)
        nobody = np.full(count, -1, np.int32)
        given[memory] = Region(
            name, copy, value.element_size(), np.ones(count, bool), nobody, nobody.copy(), np.zeros(count, bool)
        )
    return {
        "memory": memory, "holds": name, "shape": list(value.shape), "strides": list(value.stride()),
        "offset": value.storage_offset(), "dtype": str(value.dtype).removeprefix("torch."), "name": name, "held": None,
    }  # fmt: skip


def kernels_alone(source: str) -> str:
    """A file's text in which all lines are blank but those of its kernels, their functions and their constants."""
    rows = source.split("\n")
    kept: set[int] = set()
    for node in ast.parse(source).body:
        is_kernel = isinstance(node, ast.FunctionDef) and any(
            ".jit" in ast.unparse(each) or ast.unparse(each) == "jit" for each in node.decorator_list
        )
        if is_kernel or (isinstance(node, ast.Assign | ast.AnnAssign) and "constexpr" in ast.unparse(node)):
            kept.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return "\n".join(row if number in kept else "" for number, row in enumerate(rows, 1))
