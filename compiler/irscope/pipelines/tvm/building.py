"""TVM's compilation of a module for the CPU: what each pass made of it, and the executable."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from irscope.vocabulary.records import dataclass

LAST_OF_RELAX = "AttachGlobalSymbol"
_PACKED = "tirx.MakePackedAPI"
"""The pass that gives a function of TIR the calling convention of TVM, with checks of all arguments."""
_CONTAINERS = ("sequential", "_pipeline")


@dataclass
class Passes:
    """What the passes did.

    Parameters
    ----------
    relax
        Passes that changed the whole module, with its text after them.
    functions, lowered
        The text of each function of TIR as Relax calls it, and after the passes of TIR.
    """

    relax: list[tuple[str, str]] = field(default_factory=list)
    functions: dict[str, str] = field(default_factory=dict)
    lowered: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Built:
    """An executable of TVM's virtual machine, with the LLVM IR and the assembly of all functions of TIR."""

    executable: Any
    llvm: str
    assembly: str


def build(module: Any, passes: Passes) -> Built:
    """Compiles a module by the passes that TVM has for CPUs; raises what TVM raises."""
    tvm: Any = importlib.import_module("tvm")
    target = tvm.target.Target("llvm")
    pipeline = tvm.relax.get_default_pipeline(target)
    with tvm.transform.PassContext(instruments=[_instrument(tvm, passes)]):
        executable = tvm.compile(module, target=target, relax_pipeline=pipeline)
    codes = [one for one in executable.mod.imports if getattr(one, "kind", "") == "llvm"]
    llvm, assembly = (codes[0].inspect_source(kind) for kind in ("ll", "asm")) if codes else ("", "")
    return Built(executable, str(llvm), str(assembly))


def _instrument(tvm: Any, passes: Passes) -> Any:
    is_equal = importlib.import_module("tvm_ffi").structural_equal

    class Instrument:
        """Keeps the module after each pass that changed it, but not what passes call inside themselves."""

        def __init__(self) -> None:
            self._before: list[tuple[str, Any]] = []
            self._is_relax = True

        def run_before_pass(self, module: Any, info: Any) -> None:
            """TVM calls this before each pass."""
            name = str(info.name)
            if name == _PACKED:
                passes.lowered = _texts_of(tvm, module)
            self._before.append((name, module))

        def run_after_pass(self, module: Any, info: Any) -> None:
            """TVM calls this after each pass."""
            name, before = self._before.pop()
            is_inside = any(outer not in _CONTAINERS for outer, _ in self._before)
            if not self._is_relax or is_inside or name in _CONTAINERS:
                return
            if not is_equal(before, module):
                passes.relax.append((name, module.script()))
            if name == LAST_OF_RELAX:
                self._is_relax = False
                passes.functions = _texts_of(tvm, module)

    return tvm.instrument.pass_instrument(Instrument)()


def _texts_of(tvm: Any, module: Any) -> dict[str, str]:
    functions = module.functions.items()
    return {str(name.name_hint): one.script() for name, one in functions if isinstance(one, tvm.tirx.PrimFunc)}


# --- the texts of all functions ---------------------------------------------------------------------------------------

_PREFIX = "__tvm_ffi_"


def llvm_functions(text: str, names: Mapping[str, object]) -> dict[str, str]:
    """The LLVM IR of each function of TIR: what is called by its name, and what that consists of."""
    found: dict[str, list[str]] = {}
    rows = text.split("\n")
    start = -1
    for number, row in enumerate(rows):
        if row.startswith("define "):
            start = number
        elif row == "}" and start >= 0:
            defined = re.search(r"@\"?([\w.$-]+)\"?\(", rows[start])
            if defined and (owner := owner_of(defined[1], names)):
                found.setdefault(owner, []).append("\n".join(rows[start : number + 1]) + "\n")
            start = -1
    return {name: "\n".join(parts) for name, parts in found.items()}


def assembly_functions(text: str, names: Mapping[str, object]) -> dict[str, str]:
    """The assembly of each function of TIR."""
    found: dict[str, list[str]] = {}
    part: list[str] = []
    owner = ""
    for row in text.split("\n"):
        label = re.match(r"\"?([A-Za-z_][\w.$]*)\"?:", row)
        if label:
            owner, part = owner_of(label[1], names), []
        if owner:
            part.append(row)
        if row.strip().startswith(".size") and owner:
            found.setdefault(owner, []).append("\n".join(part) + "\n")
            owner = ""
    return {name: "\n".join(parts) for name, parts in found.items()}


def owner_of(symbol: str, names: Mapping[str, object]) -> str:
    """The function of TIR that a symbol belongs to; empty if it is none: ``__tvm_ffi_NAME``, ``NAME_compute_``."""
    stem = symbol.removeprefix(_PREFIX)
    plain = re.sub(r"_(compute_|kernel|cold|lambda)?(\.?\d+)?$", "", stem)
    return next((one for one in (stem, plain) if one in names), "")
