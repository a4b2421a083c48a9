"""A C++ kernel's assembly."""

from __future__ import annotations

import os
import shutil
from typing import Any

from irscope.ir.assembly import FLAGS, clean_assembly
from irscope.ir.cpp_kernels import watched
from irscope.ir.line_tables import KernelText, Lines
from irscope.lowering.tools import LoweringError, in_interpreter, output_of
from irscope.system.commands import temporary_folder

_FILE = "kernel.cpp"


def assembly_of(text: str, python: str, instructions: str = "") -> tuple[str, Lines]:
    """The kernel's assembly with its line table; C++ names as people write them, where ``c++filt`` is there.

    Args:
        text: The kernel as it is in Inductor's output code.
        python: The interpreter with the torch whose flags are used.
        instructions: The set of instructions of another CPU (``avx512``); empty: that of this machine.
    """
    written = written_by_compiler(text, python, instructions)
    try:
        assembly, lines = clean_assembly(written, KernelText(_FILE, 1, text.count("\n") + 1), text)
    except ValueError as error:
        raise LoweringError(f"The compiler's output could not be parsed: {error}.") from error
    if filt := shutil.which("c++filt"):
        readable = output_of([filt], text=assembly)
        if readable.count("\n") == assembly.count("\n"):
            assembly = readable
    return assembly, lines


def written_by_compiler(text: str, python: str, instructions: str = "") -> str:
    """All that the compiler writes for the kernel, with the command that Inductor would compile it with."""
    with temporary_folder() as work:
        said = _command(text, python, work, instructions)
        return output_of(_assembly_only([str(word) for word in said["command"]], str(said["source"]), str(said["target"])), cwd=work)  # fmt: skip


def sanitized(text: str, python: str, folder: str) -> tuple[str, dict[str, str]]:
    """A shared library of the kernel with address and undefined-behaviour sanitizers, and the variables that its process needs.

    Raises LookupError for a text that has what no kernel has, LoweringError if it cannot be compiled.
    """
    said = _command(watched(text), python, folder)
    library, kept = os.path.join(folder, "kernel.so"), {str(said["source"]): _FILE, str(said["target"]): "kernel.so"}
    words = [kept.get(word, word) for word in map(str, said["command"])]
    words = [word for word in words if not word.startswith(("-O", "-ffast-math", "-DNDEBUG"))]
    output_of([*words, *_SANITIZERS], cwd=folder)
    preload = [output_of([words[0], f"-print-file-name={name}"]).strip() for name in ("libasan.so", "libubsan.so")]
    return library, {
        "LD_PRELOAD": " ".join(preload), "ASAN_OPTIONS": "halt_on_error=0:detect_leaks=0", "OMP_NUM_THREADS": "1",
    }  # fmt: skip


_SANITIZERS = (
    "-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fsanitize-recover=address,undefined",
    "-fno-sanitize=vptr,alignment",
)  # fmt: skip


def _command(text: str, python: str, folder: str, instructions: str = "") -> dict[str, Any]:
    """What Inductor would compile a text with, which is written to a folder.  Raises LoweringError without a compiler."""
    path = os.path.join(folder, _FILE)
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
    said: dict[str, Any] = in_interpreter(python, "internals/inductor_command.py", path, *([instructions] if instructions else []))  # fmt: skip
    if shutil.which(str(said["command"][0])) is None:
        raise LoweringError(
            f"C++ compiler not found: {said['command'][0]}, which torch would use. "
            "Install g++, or set the variable CXX to another compiler."
        )
    return said


def _assembly_only(command: list[str], source: str, target: str) -> list[str]:
    """The command with another source, which stops at the assembly and writes it to stdout."""
    words = [_FILE if word == source else word for word in command if word != target]
    if _FILE not in words or "-o" not in words:
        raise LoweringError(f"Inductor's command is not as expected: {' '.join(command)}")
    at = words.index("-o")
    return [*words[:at], *words[at + 1 :], *FLAGS, "-o", "-"]
