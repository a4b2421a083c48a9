"""What the code of a program uses beside its inputs, as it is at the end of the script.

A call may write the same value each time, as an attribute of an argument or an entry of a dictionary; then a further call
changes nothing, and only the end of the script shows what it wrote.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import os
import sys
import types
from collections.abc import Callable, Collection, Iterator, MutableMapping
from typing import Any

from irscope.runner.kept_state import cells_of, is_own, walked

_MOST_LEAVES = 5_000
_MOST_FUNCTIONS = 200
_VARIABLES = ("CUDA", "GOMP", "INDUCTOR", "KMP", "MKL", "OMP", "PYTORCH", "TORCH", "TRITON")
"""What torch and its libraries set by themselves begins with it."""
_NOT_SET = ("params", "capturable")
"""Parameters are looked at one by one, and Dynamo makes an optimizer capturable."""


def names_used(program: Any) -> list[str]:
    """The global names that the code of a program reads, also in functions of the user's that it calls."""
    return [place for place, _ in _globals_of(program)]


def state_at_the_end(program: Any, arguments: Any, also: Collection[str]) -> dict[str, Any]:
    """The tensors and plain values in what a program uses, by place.

    Args:
        arguments: Of its first call: objects in them are those of the script.
        also: Other global names, which the original's code uses.
    """
    seen: set[int] = set()
    leaves = (
        leaf
        for place, root in _roots(program, arguments, also)
        for name, value in _parts(place, root)
        for leaf in walked(name, value, seen)
    )
    return dict(itertools.islice(leaves, _MOST_LEAVES))


def putting_back(program: Any) -> list[Callable[[], None]]:
    """What gives the modules, optimizers and schedules that a program uses, and the search for modules, the state that they
    have now.

    A program that is a training step then begins each call from the same parameters, gradients and averages.
    """
    torch: Any = sys.modules["torch"]
    undo: list[Callable[[], None]] = [functools.partial(sys.path.__setitem__, slice(None), list(sys.path))]
    for _, value in _roots(program, (), ()):
        if isinstance(value, torch.nn.Module):
            undo += [_tensor_back(tensor) for tensor in (*value.parameters(), *value.buffers())]
        elif isinstance(value, torch.optim.Optimizer):
            undo += [_entries_back(group) for group in value.param_groups]
            undo += [_tensor_back(tensor) for group in value.param_groups for tensor in group["params"]]
            undo += [_entries_back(held) for held in value.state.values()]
            undo.append(_entries_back(value.state))
        elif type(value).__module__.startswith(("torch.optim.lr_scheduler", "torch.amp")):
            undo.append(_entries_back(vars(value)))
    return undo


def _tensor_back(tensor: Any) -> Callable[[], None]:
    copy = tensor.detach().clone()
    grad = tensor.grad if tensor.is_leaf else None
    held = None if grad is None else grad.detach().clone()

    def undo() -> None:
        if not tensor.is_inference():
            tensor.detach().copy_(copy)
        if grad is not None:
            grad.detach().copy_(held)
        if tensor.is_leaf:
            tensor.grad = grad

    return undo


def _entries_back(entries: MutableMapping[Any, Any]) -> Callable[[], None]:
    """Of a dictionary, whose tensors may be written in place."""
    torch: Any = sys.modules["torch"]
    before = dict(entries)
    tensors = [_tensor_back(held) for held in before.values() if isinstance(held, torch.Tensor)]

    def undo() -> None:
        for one in tensors:
            one()
        entries.clear()
        entries.update(before)

    return undo


def environment_changed(before: dict[str, str], now: dict[str, str]) -> dict[str, Any]:
    """The variables of the environment that differ, without those of torch and its libraries; and modes of the process."""
    return modes_of_process() | {
        name: now.get(name)
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name) and not name.startswith(_VARIABLES)
    }


def modes_of_process() -> dict[str, str]:
    """What a call may set for all code, as texts."""
    torch: Any = sys.modules["torch"]
    numpy: Any = sys.modules.get("numpy")
    modes = {
        "the default dtype": torch.get_default_dtype(),
        "autocast": [torch.is_autocast_enabled(kind) for kind in ("cpu", "cuda")],
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "the precision of products": torch.get_float32_matmul_precision(),
        "threads": torch.get_num_threads(),
        "the search for modules": sys.path,
        "the working folder": os.getcwd(),
        "NumPy's errors": numpy.geterr() if numpy is not None else None,
    }
    return {name: str(mode) for name, mode in modes.items()}


def _roots(program: Any, arguments: Any, also: Collection[str]) -> Iterator[tuple[str, Any]]:
    module, function = _module_of(program), _function_of(program)
    owner = module if module is not None else getattr(program, "__self__", None)
    if owner is not None:
        yield "self", owner
    yield from cells_of(function)
    found = dict(_globals_of(program))
    space = getattr(function, "__globals__", {})
    found |= {name: space[name] for name in also if name not in found and name in space}
    yield from found.items()
    yield from ((f"argument {number}", value) for number, value in enumerate(_objects(arguments)))


def _module_of(program: Any) -> Any:
    module = getattr(program, "_orig_mod", getattr(program, "__self__", program))
    return module if isinstance(module, sys.modules["torch"].nn.Module) else None


def _function_of(program: Any) -> Any:
    module = _module_of(program)
    function = inspect.unwrap(program if module is None else module.forward)
    return getattr(function, "__func__", function)


def _globals_of(program: Any) -> Iterator[tuple[str, Any]]:
    """Global names with what they are, those of other files with the file's name."""
    module = _module_of(program)
    modules = module.modules() if module is not None else ()
    waiting = [_function_of(program), *(type(one).forward for one in modules if is_own(type(one)))]
    done: set[int] = set()
    while waiting and len(done) < _MOST_FUNCTIONS:
        function = waiting.pop()
        if not isinstance(function, types.FunctionType) or id(function) in done:
            continue
        done.add(id(function))
        waiting.append(getattr(function, "__wrapped__", None))  # such as torch.compiler.disable is made with
        space = function.__globals__
        file = str(space.get("__name__", ""))
        if file.partition(".")[0] == "torch":
            continue
        for name in _names_in(function.__code__):
            value = space.get(name)
            if isinstance(value, types.FunctionType):
                waiting += [value] if is_own(value) else []
                own = {attribute: held for attribute, held in vars(value).items() if not attribute.startswith("_")}
                yield from ((f"{name}.{attribute}", held) for attribute, held in own.items())
            elif name in space and not isinstance(value, types.ModuleType):
                yield name if file == "__main__" else f"{file}.{name}", value


def _names_in(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_in(constant)


def _objects(value: Any, depth: int = 0) -> Iterator[Any]:
    """What is neither a container nor a tensor nor a plain value."""
    if isinstance(value, (list, tuple, dict)) and depth < 5:
        for one in value.values() if isinstance(value, dict) else value:
            yield from _objects(one, depth + 1)
    elif hasattr(value, "__dict__") and not isinstance(value, sys.modules["torch"].Tensor):
        yield value


def _parts(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    """A value itself; of a module and an optimizer what they hold, with the gradients."""
    torch: Any = sys.modules["torch"]
    if isinstance(value, torch.nn.Module):
        own = vars(torch.nn.Module())
        for path, one in value.named_modules():
            prefix = ".".join(filter(None, (place, path)))
            yield f"{prefix}.training", one.training
            hooks = [len(held) for name, held in vars(one).items() if name.endswith("_hooks")]
            yield (
                f"{prefix} (hooks, and buffers that are not saved)",
                f"{hooks} {sorted(one._non_persistent_buffers_set)}",
            )
            yield from ((f"{prefix}.{name}", held) for name, held in vars(one).items() if name not in own)
        for name, tensor in (*value.named_parameters(), *value.named_buffers()):
            yield from _with_gradient(f"{place}.{name}", tensor)
    elif isinstance(value, torch.optim.Optimizer):
        for number, group in enumerate(value.param_groups):
            yield from ((f"{place}[{number}].{name}", held) for name, held in group.items() if name not in _NOT_SET)
            for at, tensor in enumerate(group["params"]):
                yield from _with_gradient(f"{place}[{number}].{at}", tensor)
            states = enumerate(value.state.get(parameter, {}) for parameter in group["params"])
            yield from ((f"{place}[{number}].{at}.{name}", held) for at, of in states for name, held in of.items())
    else:
        yield from _with_gradient(place, value)


def _with_gradient(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    """A value, and its gradient if it has one: a number that becomes a tensor has none before and after."""
    yield place, value
    if isinstance(value, sys.modules["torch"].Tensor) and value.is_leaf and value.grad is not None:
        yield f"{place}.grad", value.grad
