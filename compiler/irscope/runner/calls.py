"""One call of a program as evidence: its results, what it changes, its gradients, and the next random numbers."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from typing import Any

from irscope.internals import random_seeds
from irscope.runner import draws
from irscope.runner.attributes import Attributes, attributes_of
from irscope.runner.kept_state import KeptState
from irscope.runner.leaves import disturbed, leaves, not_a_number
from irscope.runner.rounds import Measured, modes
from irscope.runner.used_state import modes_of_process, putting_back
from irscope.vocabulary.visible import bounded

SEED = 20
WITHOUT = "without a gradient"
"""The place of the names of inputs and parameters that the results do not depend on: optimizers do not change these."""
SHARED = "memory of an input"
"""The place of the names of results that are inputs, or views of them: what is written into these is written into both."""
REQUIRES = "what requires a gradient"
"""The place of the names of results and inputs that require gradients after a call: without it no backward goes through."""
FORM = "form of the results"
"""The place of what is said of the form of results: code that gets a channels-last tensor may count on it."""
CHANGED = "changed "
"""Before the places of what a call changes outside of its inputs."""
_MOST_ELEMENTS = 1 << 24
"""The most elements of the tensors of one result; a larger one is compared by its first elements and its sum."""


def called(
    one: Measured, change: Any, number: int = 0, pushed: str = "", fixed: Collection[str] = ()
) -> dict[str, Any]:
    """The results of a call, what it changed of its inputs, its gradients and the next random numbers.

    Each ``number`` has other random numbers: what happens by chance, as that a layer is left out, is to be seen in some
    of the calls.  Inputs at the places ``fixed`` are as they were: numbers that a change made tensors.
    """
    torch: Any = sys.modules["torch"]
    state = {key: (value, value.detach().clone()) for key, value in state_of(one.program).items()}
    attributes, kept, training = attributes_of(one.program), KeptState(one.program), putting_back(one.program)
    random_seeds.seed_all(SEED)
    found: dict[str, Any] = {}
    try:
        with modes(one):
            args, kwargs = disturbed([one.args, one.kwargs], change, fixed)
            random_seeds.seed_all(SEED + number)
            with draws.pushed(pushed):
                result = one.compiled(*args, **kwargs)
            found = {f"result{place}": leaf for place, leaf in leaves(result).items()}
            found |= {f"input{place}": leaf for place, leaf in leaves([args, kwargs]).items()}
            found[SHARED] = _shared(result, [args, kwargs])
            found[REQUIRES] = [*_requiring("result", result), *_requiring("input", [args, kwargs])]
            found |= {f"{CHANGED}{name}": mode for name, mode in modes_of_process().items()}
            found |= {f"{CHANGED}the mode of gradients": torch.is_grad_enabled()}
            found[FORM] = list(_forms(result))
            found["random numbers after it"] = torch.rand(4)
            found["Python's and NumPy's random numbers after it"] = torch.tensor(random_seeds.next_ones())
            found |= {f"{CHANGED}{place}": value for place, value in kept.changed().items()}
            found |= _gradients(one, result, [args, kwargs]) if change is not not_a_number else {}
            found |= {f"state {key}": value.detach().clone() for key, (value, _) in state.items()
                      if not value.requires_grad}  # fmt: skip
            found |= {} if attributes is None else kept_numbers(attributes)
    except Exception as error:  # noqa: BLE001  whatever the program raises is what it does
        found = {"raised": raised(error)}
    with torch.no_grad():
        for value, before in state.values():
            if not value.is_inference():
                value.copy_(before)
        for undo in training:
            undo()
    kept.put_back()
    if attributes is not None:
        attributes.put_back()
    return small(found)


def raised(error: Exception) -> str:
    """The type and the first line of an error."""
    kind = type(error)
    name = kind.__name__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__name__}"
    return bounded(f"{name}: {error}".splitlines()[0])


def _gradients(one: Measured, result: Any, inputs: Any) -> dict[str, Any]:
    """The gradients of a weighted sum of the results, for the inputs and parameters that require them."""
    torch: Any = sys.modules["torch"]
    tensors = [t for t in _live_tensors(result) if t.requires_grad and (t.is_floating_point() or t.is_complex())]
    own = (t for t in _live_tensors(inputs) if t.requires_grad and t.is_leaf)
    wanted = {f"input {n}": t for n, t in enumerate(own)}
    wanted |= {f"state {key}": t for key, t in state_of(one.program).items() if t.requires_grad}
    if not tensors or not wanted:
        return {}
    weights = [torch.randn(t.shape, device=t.device).to(t.dtype) for t in tensors]
    found = torch.autograd.grad(tensors, list(wanted.values()), weights, allow_unused=True)
    zero = {name: torch.zeros_like(t) for name, t in wanted.items()}
    given = {f"gradient of {n}": zero[n] if g is None else g.detach() for n, g in zip(wanted, found, strict=True)}
    return {**given, WITHOUT: [n for n, g in zip(wanted, found, strict=True) if g is None]}


def _requiring(name: str, value: Any) -> list[str]:
    return [f"{name} {n}" for n, tensor in enumerate(_live_tensors(value)) if tensor.requires_grad]


def _shared(result: Any, inputs: Any) -> list[str]:
    memory = {t.untyped_storage().data_ptr() for t in _live_tensors(inputs) if _has_memory(t)}
    results = enumerate(_live_tensors(result))
    return [f"result {n}" for n, t in results if _has_memory(t) and t.untyped_storage().data_ptr() in memory]


def _forms(result: Any) -> Iterator[str]:
    torch: Any = sys.modules["torch"]
    owners: dict[int, str] = {}
    for n, tensor in enumerate(_live_tensors(result)):
        yield f"result {n} is a {type(tensor).__name__}"
        if not _has_memory(tensor):
            continue
        owner = owners.setdefault(tensor.untyped_storage().data_ptr(), f"result {n}")
        yield f"result {n} has memory of its own" if owner == f"result {n}" else f"result {n} has the memory of {owner}"
        if tensor.is_contiguous():
            yield f"result {n} is contiguous"
        elif tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last):
            yield f"result {n} is in channels_last"


def _has_memory(tensor: Any) -> bool:
    return tensor.layout is sys.modules["torch"].strided and tensor.numel() > 0


def _live_tensors(value: Any, depth: int = 0) -> Iterator[Any]:
    if isinstance(value, sys.modules["torch"].Tensor):
        yield value
    elif depth < 20 and isinstance(value, (tuple, list, dict)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _live_tensors(one, depth + 1)
    elif depth < 20 and hasattr(value, "__dataclass_fields__"):
        yield from _live_tensors({name: getattr(value, name, None) for name in value.__dataclass_fields__}, depth + 1)


def state_of(program: Any) -> dict[str, Any]:
    """The parameters and buffers of a program's module; none if the program is not a module."""
    module = getattr(program, "_orig_mod", getattr(program, "__self__", program))
    if not isinstance(module, sys.modules["torch"].nn.Module):
        return {}
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def small(found: dict[str, Any]) -> dict[str, Any]:
    """With the large tensors cut, and on the CPU, and values of Python's own types, which every process can read."""
    torch: Any = sys.modules["torch"]
    return {
        name: _plain(leaf) if not isinstance(leaf, torch.Tensor) else leaf.detach().cpu() if leaf.numel() <= _MOST_ELEMENTS
        else torch.cat([leaf.detach().reshape(-1)[:_MOST_ELEMENTS].cpu(), leaf.detach().sum().reshape(1).cpu().to(leaf.dtype)])
        for name, leaf in found.items()
    }  # fmt: skip


def _plain(value: Any) -> Any:
    """The text or number in a value of a subclass, such as members of some enumerations and NumPy's numbers."""
    kind = next((kind for kind in (str, int, float, complex) if isinstance(value, kind)), None)
    if kind is None or type(value) in (kind, bool):
        return value
    return {str: str.__str__, int: int.__int__, float: float.__float__, complex: complex.__pos__}[kind](value)


def kept_numbers(attributes: Attributes) -> dict[str, Any]:
    """The numbers in attributes of a module that have changed, by place."""
    return {f"{CHANGED}{name}": number for name, number in attributes.changed().items()}
