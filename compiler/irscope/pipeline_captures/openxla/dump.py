"""What XLA writes into its dump folder: HLO before and after each pass, the buffer assignment, LLVM IR, objects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from irscope.vocabulary.records import dataclass

_PASS = re.compile(r"\.(?P<number>\d{4,})\.(?P<pipeline>[^/]*?)\.after_(?P<passed>[\w.-]+?)(?:\.before_[\w.-]+)?\.txt$")
_LLVM = re.compile(
    r"^module_\d+\.[^.]+(?:\.\d+)?\.(?:__compute_module_)?(?P<name>.+?)(?:_elemental)?(?:_kernel_module)?\.ir-(?P<state>no|with)-opt\.ll$"
)
_DEFINED = re.compile(r"^define [^@\n]*@\"?(?P<name>[\w.$-]+)\"?\(", re.MULTILINE)


@dataclass(frozen=True)
class PassDump:
    """The module after a pass that changed it."""

    passed: str
    text: str


@dataclass(frozen=True)
class KernelDump:
    """A module of LLVM IR, before and after LLVM's passes, and its object file; empty or None if it is missing.

    Args:
        functions: The functions that it defines.
    """

    name: str
    functions: tuple[str, ...]
    llvm: str
    optimized: str
    object: Path | None


def dump_options(folder: str) -> dict[str, object]:
    """The options of a compilation that dumps into a folder."""
    return {"xla_dump_to": folder, "xla_dump_hlo_pass_re": ".*", "xla_dump_hlo_as_text": True}


class Dump:
    """The files of one module in a folder that XLA dumped into."""

    def __init__(self, folder: Path) -> None:
        self._files = sorted(one for one in folder.iterdir() if one.is_file())

    def text(self, ending: str) -> str:
        """The text of the file whose name ends so; empty if there is none."""
        return next((_read(one) for one in self._files if one.name.endswith(ending)), "")

    def passes(self) -> Iterator[PassDump]:
        """The module after each pass, in their order."""
        for file in self._files:
            match = _PASS.search(file.name)
            if match and match["passed"] != "pipeline-start":
                yield PassDump(match["passed"], _read(file))

    def kernels(self) -> Iterator[KernelDump]:
        """The modules of LLVM IR by name."""
        found: dict[str, dict[str, str]] = {}
        for file in self._files:
            if match := _LLVM.match(file.name):
                found.setdefault(match["name"], {})[match["state"]] = _read(file)
        for name, texts in found.items():
            llvm, optimized = texts.get("no", ""), texts.get("with", "")
            functions = tuple(dict.fromkeys(_DEFINED.findall(llvm or optimized)))
            yield KernelDump(name, functions, llvm, optimized, self._object(name))

    def _object(self, name: str) -> Path | None:
        modules = (f"{name}_kernel_module", f"{name}_elemental_kernel_module", f"__compute_module_{name}", name)
        endings = tuple(f".obj-file.{one}.o" for one in modules)
        return next((one for one in self._files if one.name.endswith(endings)), None)


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")
