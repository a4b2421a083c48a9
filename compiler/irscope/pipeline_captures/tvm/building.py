"""TVM's compilation of a module for the CPU: what each pass made of it, and the executable."""

from __future__ import annotations

import dataclasses
import importlib
import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from irscope.pipeline_captures.tvm.beside import Beside, NotDoneError
from irscope.pipeline_captures.tvm.cuda import cuda_sources
from irscope.pipeline_captures.tvm.tir_passes import TirVersion, versions_of
from irscope.vocabulary.records import dataclass

LAST_OF_RELAX = "AttachGlobalSymbol"
_PACKED = "tirx.MakePackedAPI"
"""The pass that gives a function of TIR the calling convention of TVM, with checks of all arguments."""
_LAST_OF_TIR = "tirx.LowerIntrin"
_CONTAINERS = ("sequential", "_pipeline")


@dataclass
class Passes:
    """What the passes did.

    Args:
        relax: Passes that changed the whole module, with its text after them; what functions of TIR compute is left
            out.
        module: The module after the last of them; None before the first.
        functions, lowered: The text of each function of TIR as Relax calls it, and after the passes of TIR.
        beside: Makes `Lower` in a fork; None before the passes of TIR are done.
    """

    relax: list[tuple[str, str]] = field(default_factory=list)
    module: Any = None
    functions: dict[str, str] = field(default_factory=dict)
    lowered: dict[str, str] = field(default_factory=dict)
    beside: Beside | None = None


@dataclass(frozen=True)
class Lower:
    """What is made of functions of TIR besides the code that runs.

    Args:
        versions: Functions after passes of TIR that changed them.
        cuda: The CUDA source of functions.
        missing: What there is not → why.
    """

    versions: list[TirVersion]
    cuda: dict[str, str]
    missing: dict[str, str]


@dataclass(frozen=True)
class Built:
    """An executable of TVM's virtual machine, with the LLVM IR and the assembly of all functions of TIR."""

    executable: Any
    llvm: str
    assembly: str
    lower: Lower


def build(module: Any, passes: Passes) -> Built:
    """Compiles a module by the passes that TVM has for CPUs; raises what TVM raises."""
    tvm: Any = importlib.import_module("tvm")
    target = tvm.target.Target("llvm")
    pipeline = tvm.relax.get_default_pipeline(target)
    try:
        with tvm.transform.PassContext(instruments=[_instrument(tvm, passes)]):
            executable = tvm.compile(module, target=target, relax_pipeline=pipeline)
    except Exception:
        if passes.beside is not None:
            passes.beside.stop()
        raise
    codes = [one for one in executable.mod.imports if getattr(one, "kind", "") == "llvm"]
    llvm, assembly = (codes[0].inspect_source(kind) for kind in ("ll", "asm")) if codes else ("", "")
    return Built(executable, str(llvm), str(assembly), _lower(passes))


def _lower(passes: Passes) -> Lower:
    """What the fork has made."""
    if passes.beside is None:
        return Lower([], {}, {"TIR after each pass, and the CUDA source": f"TVM did not run {_LAST_OF_TIR}"})
    try:
        made = passes.beside.result()
    except NotDoneError as error:
        return Lower([], {}, {"TIR after each pass, and the CUDA source": str(error)})
    missing = {}
    if left_out := made["left_out"]:
        missing[f"TIR of {_listed(left_out)} after each pass"] = "irscope keeps a bounded number of versions"
    for reason in dict.fromkeys(made["failed"].values()):
        names = [name for name, why in made["failed"].items() if why == reason]
        missing[f"the CUDA source of {_listed(names)}"] = reason
    return Lower([TirVersion(*one) for one in made["versions"]], made["cuda"], missing)


def _listed(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _work_beside(tvm: Any, functions: dict[str, Any], passed: list[tuple[str, Any]]) -> Any:
    versions, left_out = versions_of(functions, passed, _PACKED)
    with tvm.transform.PassContext():  # not the one that the instrument listens to
        cuda, failed = cuda_sources(functions)
    return {
        "versions": [dataclasses.astuple(one) for one in versions], "left_out": left_out,
        "cuda": cuda, "failed": failed,
    }  # fmt: skip


def _instrument(tvm: Any, passes: Passes) -> Any:
    is_equal = importlib.import_module("tvm_ffi").structural_equal

    class Instrument:
        """Keeps the module after each pass that changed it, but not what passes call inside themselves."""

        def __init__(self) -> None:
            self._before: list[tuple[str, Any]] = []
            self._is_relax = self._is_tir = True
            self._functions: dict[str, Any] = {}
            self._passed: list[tuple[str, Any]] = []

        def run_before_pass(self, module: Any, info: Any) -> None:
            """TVM calls this before each pass."""
            name = str(info.name)
            if name == _PACKED:
                passes.lowered = {one: each.script() for one, each in _functions_of(tvm, module).items()}
            self._before.append((name, module))

        def run_after_pass(self, module: Any, info: Any) -> None:
            """TVM calls this after each pass."""
            name, before = self._before.pop()
            is_inside = any(outer not in _CONTAINERS for outer, _ in self._before)
            if is_inside or name in _CONTAINERS:
                return
            if not self._is_relax:
                self._note_tir(name, module)
                return
            if not is_equal(before, module):
                passes.relax.append((name, _text_of_relax(tvm, module)))
                passes.module = module
            if name == LAST_OF_RELAX:
                self._is_relax = False
                self._functions = _functions_of(tvm, module)
                passes.functions = {one: function.script() for one, function in self._functions.items()}

        def _note_tir(self, name: str, module: Any) -> None:
            """Keeps the module, which costs nothing; what each pass changed is found beside TVM's work for LLVM."""
            if self._is_tir:
                self._passed.append((name, module))
                if name == _LAST_OF_TIR:
                    self._is_tir = False  # also in the fork, which runs passes itself
                    called, passed = self._functions, self._passed
                    passes.beside = Beside(lambda: _work_beside(tvm, called, passed))

    return tvm.instrument.pass_instrument(Instrument)()


def _text_of_relax(tvm: Any, module: Any) -> str:
    """The text of a module whose functions of TIR have empty bodies: those bodies are most of the whole text."""
    empty = tvm.tirx.PrimFunc([], tvm.tirx.Evaluate(0))
    functions = {name: empty if isinstance(one, tvm.tirx.PrimFunc) else one for name, one in module.functions.items()}
    return str(tvm.IRModule(functions, global_infos=module.global_infos).script())


def _functions_of(tvm: Any, module: Any) -> dict[str, Any]:
    functions = module.functions.items()
    return {str(name.name_hint): one for name, one in functions if isinstance(one, tvm.tirx.PrimFunc)}


# --- the texts of all functions ---------------------------------------------------------------------------------------

_PREFIX = "__tvm_ffi_"
_LABEL = re.compile(r"\"?([A-Za-z_][\w.$]*)\"?:")
_INDENTED = ("\t", " ", "")


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
        if row[:1] not in _INDENTED and (label := _LABEL.match(row)):
            owner, part = owner_of(label[1], names), []
        if owner:
            part.append(row)
            if row.lstrip().startswith(".size"):
                found.setdefault(owner, []).append("\n".join(part) + "\n")
                owner = ""
    return {name: "\n".join(parts) for name, parts in found.items()}


def owner_of(symbol: str, names: Mapping[str, object]) -> str:
    """The function of TIR that a symbol belongs to; empty if it is none: ``__tvm_ffi_NAME``, ``NAME_compute_``."""
    stem = symbol.removeprefix(_PREFIX)
    plain = re.sub(r"_(compute_|kernel|cold|lambda)?(\.?\d+)?$", "", stem)
    return next((one for one in (stem, plain) if one in names), "")
