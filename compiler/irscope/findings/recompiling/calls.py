"""The calls for which a function was compiled, and the sizes of the tensors that it got in each.

PyTorch names the first guard that failed, of one tensor and one dimension.  What else changed is seen by comparing the
calls.
"""

from __future__ import annotations

import inspect
import itertools
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from irscope.events.stack import FramePlace, call_into_compiled_code
from irscope.findings.moment import Known
from irscope.internals.dynamo_frames import Entrance, call_to_compile, entrance
from irscope.internals.modes import sizes_of
from irscope.vocabulary.records import dataclass

NOTES = "calls-that-compiled"
_TENSORS, _DEPTH, _CALLS = 300, 3, 16


@dataclass(frozen=True)
class Sizes:
    """The sizes of one tensor; ``of_module`` for a parameter or a buffer of a module."""

    sizes: tuple[int, ...]
    of_module: bool


@dataclass(frozen=True)
class Parameters:
    """The parameters of a function, from its code.

    Args:
        positional: Parameters that can be given by position.
        keyword_only: Parameters that cannot.
        rest: The name of ``*args``; empty if there is none.
        rest_count: How many arguments are in it.
        keywords: The name of ``**kwargs``; empty if there is none.
    """

    positional: tuple[str, ...]
    keyword_only: tuple[str, ...]
    rest: str
    rest_count: int
    keywords: str

    def has(self, source: str) -> bool:
        """Whether what a guard names is, or is in, one of them."""
        root = source.partition("[")[0].partition(".")[0]
        return root in {*self.positional, *self.keyword_only, self.rest, self.keywords} - {""}


@dataclass(frozen=True)
class Call:
    """A call for which a function was compiled.

    Args:
        place: The user's call into compiled code; None if none is found.
        entrance: How that call came to the function.
        parameters: Parameters of the function.
        tensors: The sizes of the tensors among the arguments, by how a guard names them: ``x``, ``batch['ids']``.
    """

    place: FramePlace | None
    entrance: Entrance
    parameters: Parameters
    tensors: Mapping[str, Sizes]


def call_now() -> Call | None:
    """The call for which a function is about to be compiled, at the record ``dynamo_start``."""
    found = call_to_compile()
    if found is None:
        return None
    code, variables = found
    tensors: dict[str, Sizes] = {}
    for name, value in variables.items():
        tensors.update(itertools.islice(_tensors_in(str(name), value, _DEPTH), _TENSORS - len(tensors)))
    return Call(call_into_compiled_code(), entrance(), _parameters_of(code, variables), tensors)


def remember(known: Known, compile: str) -> Sequence[Call]:
    """Adds the call of a compile that begins to those of its function; all of them, the oldest first.

    The first and the newest are kept.
    """
    frame, _, number = compile.rpartition("/")
    again, _, life = number.partition("#")
    calls: dict[tuple[str, str], list[Call]] = known.notes.setdefault(NOTES, {})
    mine = calls.setdefault((frame, life), [])
    if again == "0":
        mine.clear()
    if (call := call_now()) is not None:
        mine.append(call)
        del mine[1 : len(mine) - _CALLS]
    return mine


def varying(calls: Sequence[Call]) -> dict[str, tuple[int, ...]]:
    """The dimensions of each tensor whose size is not the same in all calls."""
    found: dict[str, tuple[int, ...]] = {}
    for path, now in calls[-1].tensors.items() if calls else ():
        seen = [call.tensors[path].sizes for call in calls if path in call.tensors]
        alike = [sizes for sizes in seen if len(sizes) == len(now.sizes)]
        if dims := tuple(i for i in range(len(now.sizes)) if len({sizes[i] for sizes in alike}) > 1):
            found[path] = dims
    return found


def _parameters_of(code: types.CodeType, variables: Mapping[str, Any]) -> Parameters:
    names, at = code.co_varnames, code.co_argcount
    keyword_only = names[at : at + code.co_kwonlyargcount]
    at += code.co_kwonlyargcount
    rest = names[at] if code.co_flags & inspect.CO_VARARGS else ""
    at += bool(rest)
    held = variables.get(rest) if rest else ()
    return Parameters(
        names[: code.co_argcount],
        keyword_only,
        rest,
        len(held) if type(held) is tuple else 0,
        names[at] if code.co_flags & inspect.CO_VARKEYWORDS else "",
    )


def _tensors_in(path: str, value: Any, depth: int) -> Iterator[tuple[str, Sizes]]:
    """The tensors in an argument: in plain lists, tuples and dicts, and of modules; no code of the user is called."""
    torch = sys.modules["torch"]
    if type(value) in (torch.Tensor, torch.nn.Parameter):
        if (sizes := sizes_of(value)) is not None:
            yield path, Sizes(sizes, type(value) is torch.nn.Parameter)
    elif depth and type(value) in (list, tuple):
        for index, item in enumerate(value[:_TENSORS]):
            yield from _tensors_in(f"{path}[{index}]", item, depth - 1)
    elif depth and type(value) is dict:
        for key, item in list(value.items())[:_TENSORS]:
            if isinstance(key, (str, int)):
                yield from _tensors_in(f"{path}[{key!r}]", item, depth - 1)
    elif depth and isinstance(value, torch.nn.Module):
        yield from _tensors_of_module(path, value, depth)


def _tensors_of_module(path: str, module: Any, depth: int) -> Iterator[tuple[str, Sizes]]:
    torch = sys.modules["torch"]
    own = object.__getattribute__(module, "__dict__")
    for group in ("_parameters", "_buffers"):
        for name, tensor in list((own.get(group) or {}).items()):
            if type(tensor) in (torch.Tensor, torch.nn.Parameter) and (sizes := sizes_of(tensor)) is not None:
                yield f"{path}.{name}", Sizes(sizes, True)
    for name, part in list((own.get("_modules") or {}).items()):
        if isinstance(part, torch.nn.Module):
            whole = f"{path}[{name}]" if name.isdigit() else f"{path}.{name}"
            yield from _tensors_of_module(whole, part, depth - 1) if depth > 1 else ()
