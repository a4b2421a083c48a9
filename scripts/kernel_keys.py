"""Renames compiled kernels for this checkout: ``kernel_keys.py FOLDER OLD_VENV``.

Inductor names a C++ kernel after its text and the compiler's command, and that has the path of torch's headers: in another
checkout the same kernel has another name.  The headers themselves are the same (scripts/lib/kernels.mjs keeps the kernels of
each torch and compiler apart), and so is the library.  What does not have the name that it had in the old ``.venv`` stays as
it is, and is compiled again.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Prints how many were renamed."""
    folder, old = Path(sys.argv[1]), sys.argv[2]
    # As tests/conftest.py has it: the command depends on what the processor is said to have.
    os.environ["TORCHINDUCTOR_VEC_ISA_OK"] = "1"
    codecache: Any = importlib.import_module("torch._inductor.codecache")
    new_commands = commands(codecache)
    pairs = [(command.replace(sys.prefix, old), command) for command in new_commands]
    renamed = 0
    for source in folder.glob("*/*.main.cpp"):
        text, name = source.read_text(encoding="utf-8").strip(), source.name.partition(".")[0]
        for before, now in pairs:
            if codecache.code_hash(text, f"None {before}") == name:
                key = codecache.code_hash(text, f"None {now}")
                move(source, folder / key[1:3] / f"{key}.main.cpp")
                renamed += 1
                break
    print(f"{renamed} kernels of {old} are used")


def commands(codecache: Any) -> list[str]:
    """The compiler's commands for a kernel with and without vector instructions, as they are part of its name."""
    builder: Any = importlib.import_module("torch._inductor.cpp_builder")
    isas: Any = importlib.import_module("torch._inductor.cpu_vec_isa")
    found = []
    for isa in (isas.pick_vec_isa(), isas.invalid_vec_isa):
        options = builder.CppTorchDeviceOptions(
            **codecache.CppPythonBindingsCodeCache.cpp_compile_command_flags,
            compile_only=False,
            min_optimize=False,
            device_type="cpu",
            extra_flags=(),
            use_relative_path=False,
            vec_isa=isa,
        )
        found.append(builder.CppBuilder(name="o", sources="i", BuildOption=options).get_command_line())
    return found


def move(source: Path, target: Path) -> None:
    """A source and its library."""
    target.parent.mkdir(exist_ok=True)
    for old, new in ((source.with_suffix(".so"), target.with_suffix(".so")), (source, target)):
        old.replace(new)


if __name__ == "__main__":
    main()
