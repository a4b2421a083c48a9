"""Inputs that the user gives in place of those of the call: from a file that ``torch.save`` wrote, or a Python file.

A Python file runs in the script's process and defines ``inputs``, a function without arguments or a value: a tuple of the
tensors that the compiled function gets, in the order of its arguments, or a dict by names.  A name is that of the argument
(``x``, ``input_ids``, ``args[0]``), of the dynamo graph's input (``l_x_``) or of the compiled graph's (``arg0_1``).
What is not given stays as it was at the call.
"""

from __future__ import annotations

import contextlib
import re
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from irscope.values.run.interpreting import KeptGraph
from irscope.vocabulary.records import dataclass

_MODULE = re.compile(r"\b_(parameters|buffers|modules)\b|_(parameters|buffers)_")
_KEYS = re.compile(r"\[(?:'([^']*)'|\"([^\"]*)\"|(-?\d+))\]")


class WrongInputs(ValueError):
    """The file cannot be used; the message says why and what would fit."""


@dataclass(frozen=True)
class Input:
    """An input of a compiled graph.

    Args:
        names: By which it can be given, that of the user's argument first, the compiled graph's own last.
        order: Where it is among the arguments of the compiled function; None for a parameter or a buffer of a module,
            and for what only a backward gets.
    """

    names: tuple[str, ...]
    order: tuple[Any, ...] | None = None


@dataclass
class GivenInputs:
    """What a file gives; it is read once, when the first graph is called."""

    path: str
    _given: Any = field(default=None, init=False)
    _failed: str = field(default="", init=False)

    def put_into(self, inputs: Sequence[Input], values: Sequence[Any], backward: bool = False) -> list[Any]:
        """The inputs of a call with those of the file in place of some.

        Args:
            backward: The graph is a backward: names that it has not are those of its forward.

        Raises:
            WrongInputs: The file cannot be read, or does not fit the graph.
        """
        given = self._read()
        if isinstance(given, Mapping):
            chosen = _by_name(given, inputs, backward)
        else:
            chosen = {} if backward else _by_order(given, inputs)
        found = list(values)
        for number, value in chosen.items():
            found[number] = _fitting(inputs[number].names[0], value, values[number], self._is_python)
        return found

    @property
    def _is_python(self) -> bool:
        return self.path.endswith(".py")

    def _read(self) -> Any:
        if self._failed:
            raise WrongInputs(self._failed)
        try:
            if self._given is None:
                self._given = _run(self.path) if self._is_python else _load(self.path)
        except WrongInputs as error:
            self._failed = str(error)
            raise
        return self._given


def inputs_of(
    kept: KeptGraph, dynamo: KeptGraph | None, arguments: Sequence[str], backward: bool = False
) -> list[Input]:
    """What the inputs of a compiled graph can be called.

    Args:
        dynamo: The dynamo graph, whose inputs are known by where they come from.
        arguments: Names of the compiled function's arguments, in order.
        backward: The graph is a backward, whose inputs are mostly values of the forward.

    The metadata of nodes says where an input comes from: Dynamo's ``grapharg`` and AOTAutograd's ``desc``, checked on
    torch 2.11 and 2.13.  Raises WrongInputs if there is no such metadata, since they would be mixed up then.
    """
    placed = [node for node in dynamo.graph.nodes if node.op == "placeholder"] if dynamo is not None else []
    inputs = [node for node in kept.graph.nodes if node.op == "placeholder"]
    for key, nodes in (("grapharg", placed), ("desc", [] if backward else inputs)):
        if nodes and not any(key in node.meta for node in nodes):
            raise WrongInputs(f"the inputs cannot be matched: nodes have no {key!r} (checked on torch 2.11 and 2.13)")
    found = []
    for node in inputs:
        desc = node.meta.get("desc")
        above = placed[desc.idx] if type(desc).__name__ == "PlainAOTInput" and desc.idx < len(placed) else None
        found.append(_input(node.name, above, arguments))
    return _distinct(found)


def _distinct(inputs: list[Input]) -> list[Input]:
    """Without the short names that several have."""
    short = [given.names[0] for given in inputs]
    return [
        Input(given.names[1:], given.order) if short.count(given.names[0]) > 1 and len(given.names) > 1 else given
        for given in inputs
    ]


def _input(name: str, above: Any, arguments: Sequence[str]) -> Input:
    if above is None:
        return Input((name,))
    path = _source_of(above)
    keys: list[str | int] = [word or other or int(number) for word, other, number in _KEYS.findall(path)]
    if not keys or _MODULE.search(path) or _MODULE.search(above.name):
        return Input((above.name, name), None if keys or _MODULE.search(above.name) else (len(arguments), above.name))
    local, *rest = str(keys[0]), *keys[1:]
    told = str(rest[-1]) if rest and isinstance(rest[-1], str) else local + "".join(f"[{key}]" for key in rest)
    at = arguments.index(local) if local in arguments else len(arguments)
    return Input((told, above.name, name), (at, *(str(key).rjust(8) for key in rest)))


def _source_of(node: Any) -> str:
    """Where Dynamo took an input from: ``L['x']``."""
    source = getattr(node.meta.get("grapharg"), "source", None)
    name: Any = getattr(source, "name", "")
    return str(name() if callable(name) else name)


def _by_name(given: Mapping[Any, Any], inputs: Sequence[Input], backward: bool) -> dict[int, Any]:
    chosen: dict[int, Any] = {}
    for name, value in given.items():
        number = next((number for number, each in enumerate(inputs) if name in each.names), None)
        if number is not None:
            chosen[number] = value
        elif not backward:
            raise WrongInputs(f"unknown input {name!r}; the graph's inputs are {_told(inputs)}")
    return chosen


def _by_order(given: Sequence[Any], inputs: Sequence[Input]) -> dict[int, Any]:
    ordered = sorted((each.order, number) for number, each in enumerate(inputs) if each.order is not None)
    if len(given) != len(ordered):
        names = [inputs[number].names[0] for _, number in ordered]
        missing = f"; {', '.join(names[len(given) :])} would be missing" if len(given) < len(names) else ""
        raise WrongInputs(
            f"it gives {len(given)} inputs, and the compiled function gets {len(names)}: {', '.join(names)}{missing}"
        )
    return {number: value for (_, number), value in zip(ordered, given, strict=True)}


def _told(inputs: Sequence[Input]) -> str:
    told = [each.names[0] + (f" ({', '.join(each.names[1:])})" if len(each.names) > 1 else "") for each in inputs]
    return ", ".join(told[:20]) + (f" and {len(told) - 20} more" if len(told) > 20 else "")


def _fitting(name: str, given: Any, own: Any, same_device: bool) -> Any:
    """A given input in the layout of the call's own.  Raises WrongInputs if the two are not alike."""
    torch: Any = sys.modules["torch"]
    if not isinstance(own, torch.Tensor):
        if type(given) is not type(own) or given != own:
            raise WrongInputs(f"{name} is {own!r} at this call, and a different number would need another compile")
        return own
    if not isinstance(given, torch.Tensor):
        raise WrongInputs(f"{name} must be a tensor, not {type(given).__name__}")
    for what, has, wanted in (
        ("shape", list(given.shape), list(own.shape)), ("dtype", given.dtype, own.dtype),
        ("device", given.device, own.device if same_device else given.device),
    ):  # fmt: skip
        if has != wanted:
            raise WrongInputs(f"{name} has the {what} {has}, and the graph was compiled for {wanted}")
    return _laid_out(name, given.detach(), own)


def _laid_out(name: str, given: Any, own: Any) -> Any:
    """A tensor with the strides of another one, which may be expanded: then many elements are one in memory."""
    torch: Any = sys.modules["torch"]
    whole = torch.empty_strided(own.shape, own.stride(), dtype=own.dtype, device=own.device)
    part, source = whole, given
    for number, (size, stride) in enumerate(zip(own.shape, own.stride(), strict=True)):
        if size > 1 and stride == 0:
            part, source = part.narrow(number, 0, 1), source.narrow(number, 0, 1)
    part.copy_(source)
    if part is not whole and not torch.equal(whole.cpu(), given.cpu()):
        raise WrongInputs(f"{name} is expanded at this call: along such a dimension all elements must be the same")
    return whole


def _load(path: str) -> Any:
    torch: Any = sys.modules["torch"]
    try:
        given = torch.load(path, weights_only=True, map_location="cpu")
    except Exception as error:
        raise WrongInputs(f"it cannot be loaded: {type(error).__name__}: {_first_line(error)}") from error
    return _checked(given, "it holds")


def _run(path: str) -> Any:
    """Runs a Python file; what it prints goes to standard error, where the script's own output is not."""
    space: dict[str, Any] = {"__name__": "irscope_inputs", "__file__": path}
    try:
        with open(path, "rb") as file, contextlib.redirect_stdout(sys.stderr):
            exec(compile(file.read(), path, "exec"), space)
            if "inputs" not in space:
                raise WrongInputs("it defines no `inputs`: a function without arguments, a tuple or a dict")
            given = space["inputs"]() if callable(space["inputs"]) else space["inputs"]
    except (WrongInputs, KeyboardInterrupt):
        raise
    except BaseException as error:
        lines = [each.lineno for each in traceback.extract_tb(error.__traceback__) if each.filename == path]
        line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
        at = f" (line {line})" if line else ""
        raise WrongInputs(f"it raised {type(error).__name__}{at}: {_first_line(error)}") from error
    return _checked(given, "`inputs` gives")


def _checked(given: Any, what: str) -> Any:
    torch: Any = sys.modules["torch"]
    if isinstance(given, torch.Tensor):
        return (given,)
    if not isinstance(given, Mapping | tuple | list):
        raise WrongInputs(f"{what} {type(given).__name__}, and must be a tuple of tensors or a dict by names of inputs")
    return given


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0][:300]
