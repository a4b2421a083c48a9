"""A C++ kernel's assembly."""

from __future__ import annotations

import os
import shutil

from irscope.ir.assembly import FLAGS, clean_assembly
from irscope.ir.line_tables import KernelText, Lines
from irscope.lowering.tools import LoweringError, in_interpreter, output_of
from irscope.system.commands import temporary_folder

_FILE = "kernel.cpp"


def assembly_of(text: str, python: str, instructions: str = "") -> tuple[str, Lines]:
    """The kernel's assembly with its line table; C++ names as people write them, where ``c++filt`` is there.

    Parameters
    ----------
    text
        The kernel as it is in Inductor's output code.
    python
        The interpreter with the torch whose flags are used.
    instructions
        The set of instructions of another CPU (``avx512``); empty: that of this machine.
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
        path = os.path.join(work, _FILE)
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        said = in_interpreter(python, "internals/inductor_command.py", path, *([instructions] if instructions else []))
        command = [str(word) for word in said["command"]]
        if shutil.which(command[0]) is None:
            raise LoweringError(
                f"C++ compiler not found: {command[0]}, which torch would use. "
                "Install g++, or set the variable CXX to another compiler."
            )
        return output_of(_assembly_only(command, str(said["source"]), str(said["target"])), cwd=work)


def _assembly_only(command: list[str], source: str, target: str) -> list[str]:
    """The command with another source, which stops at the assembly and writes it to stdout."""
    words = [_FILE if word == source else word for word in command if word != target]
    if _FILE not in words or "-o" not in words:
        raise LoweringError(f"Inductor's command is not as expected: {' '.join(command)}")
    at = words.index("-o")
    return [*words[:at], *words[at + 1 :], *FLAGS, "-o", "-"]
