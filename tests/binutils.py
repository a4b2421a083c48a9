"""What binutils say of compiled code, to check our own reading against."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path


def instructions_of(binary: Path, function: str) -> list[str]:
    """A function's instructions as ``objdump`` prints them, without addresses."""
    listing = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", f"--disassemble={function}", str(binary)],
        capture_output=True, text=True, check=True, timeout=60,
    ).stdout  # fmt: skip
    found = re.findall(r"^\s*[0-9a-f]+:\t(.*?)\s*$", listing, re.MULTILINE)
    found = [re.sub(r"\s+#.*|-?0x[0-9a-f]+(?=\(%rip\))", "", row) for row in found]
    return [re.sub(r"\b[0-9a-f]+ (<)", r"\1", row) for row in found]


def lines_by_binutils(folder: Path, assembly: str, functions: list[str]) -> list[int | None]:
    """The line in ``kernel.cpp`` that ``addr2line`` gives for each instruction of some functions, no-ops left out."""
    (folder / "k.s").write_text(assembly)
    subprocess.run(["as", "k.s", "-o", "k.o"], cwd=folder, check=True)
    found: list[int | None] = []
    for function in functions:
        section = ".text.unlikely" if function.endswith(".cold") else ".text"
        listing = subprocess.run(
            ["objdump", "-d", "--no-show-raw-insn", "-j", section, f"--disassemble={function}", "k.o"],
            cwd=folder, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        addresses = re.findall(r"^\s*([0-9a-f]+):\t(?!nop|xchg   %ax,%ax|data16|cs nop)", listing, re.MULTILINE)
        said = subprocess.run(
            ["addr2line", "-e", "k.o", "-j", section, "-i", "-a", *addresses],
            cwd=folder, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        for chain in re.split(r"^0x[0-9a-f]+\n", said, flags=re.MULTILINE)[1:]:
            mine = re.search(r"kernel\.cpp:(\d+)", chain)
            found.append(int(mine[1]) if mine else None)
    return found


def functions_in(text: str) -> list[str]:
    """The functions of a cleaned assembly text."""
    return re.findall(r"^(\w[\w.]*):$", text, re.MULTILINE)


def rows_of_code(text: str) -> list[int]:
    """1-based lines of the instructions of a cleaned assembly text."""
    return [number for number, row in enumerate(text.split("\n"), 1) if re.match(r"\t[a-z]", row)]
