"""What the passes of TIR made of each function, up to what LLVM takes."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

_MOST = 2000
_MOST_CHARACTERS = 20_000_000


@dataclass(frozen=True)
class TirVersion:
    """A function of TIR after a pass that changed it.

    Args:
        number: Number of the pass, among all that ran.
        is_packed: Whether it is from after the pass that gives the function TVM's calling convention.
    """

    function: str
    passed: str
    number: int
    is_packed: bool
    text: str


def versions_of(
    functions: dict[str, Any], passed: list[tuple[str, Any]], packed: str
) -> tuple[list[TirVersion], list[str]]:
    """The versions of functions, in the order of functions; and the functions whose versions are too many to be kept.

    Args:
        functions: TVM's ``PrimFunc`` by name, before the first pass.
        passed: The name of each pass, with the module after it.
        packed: The pass that gives functions TVM's calling convention.
    """
    is_equal = importlib.import_module("tvm_ffi").structural_equal
    found: list[TirVersion] = []
    left_out: list[str] = []
    at_packed = next((number for number, (name, _) in enumerate(passed) if name == packed), len(passed))
    modules = [(name, {str(one.name_hint): each for one, each in module.functions.items()}) for name, module in passed]
    characters = 0
    for function, before in functions.items():
        own: list[TirVersion] = []
        last, text = before, before.script()
        for number, (name, module) in enumerate(modules):
            now = module.get(function, last)
            if now.same_as(last) or is_equal(last, now):
                continue
            last, was, text = now, text, now.script()
            if text != was:
                own.append(TirVersion(function, name.rpartition(".")[2], number, number >= at_packed, text))
        characters += sum(len(one.text) for one in own)
        if len(found) + len(own) > _MOST or characters > _MOST_CHARACTERS:
            left_out = list(functions)[list(functions).index(function) :]
            break
        found += own
    return found, left_out
