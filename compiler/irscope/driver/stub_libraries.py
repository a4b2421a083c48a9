"""Stubs in place of libraries of CUDA, for a PyTorch that was built for CUDA and is only used on the CPU.

Such a PyTorch cannot be imported without these libraries, which are packages of some 3 GB.  Nothing of them runs on the
CPU.  A stub defines the functions that PyTorch calls, and every one of them returns an error: no CUDA device.
"""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from irscope.system.commands import run_bounded, temporary_folder

_SECONDS = 120.0
_FOREIGN = re.compile(r"^lib(?:cu|nccl|nv)[\w-]*\.so\.\d+$")
"""Libraries of CUDA, but none of PyTorch, whose names have no version."""
_DRIVER = "libcuda.so.1"
"""It comes with a driver, and PyTorch loads what needs it only where there is one."""
_NO_DEVICE = 100
"""``cudaErrorNoDevice``, and an error in the libraries above CUDA, too."""
_TEXTS = ("cudaGetErrorString", "cudaGetErrorName", "cudnnGetErrorString", "ncclGetErrorString")
"""Functions that return a text."""


class StubError(Exception):
    """The stubs cannot be made; the message says what to do."""


def add_stubs(folder: Path) -> list[str]:
    """Writes the stubs that the libraries in a folder need beside them, and returns their names.

    Raises StubError if there is no C compiler.
    """
    libraries = sorted(one for one in folder.glob("lib*.so") if one.is_file())
    needed = sorted({name for one in libraries for name in needed_libraries(_run("objdump", "-p", one))})
    missing = [name for name in needed if name != _DRIVER and _FOREIGN.match(name)]
    missing = [name for name in missing if not (folder / name).exists()]
    defined, wanted = set(), []
    for one in libraries:
        symbols = _run("nm", "-D", "--portability", one)
        defined |= set(_symbols(symbols, "TDBRVWi"))
        wanted += list(_symbols(symbols, "U"))
    for name, source, versions in stub_sources(missing, (one for one in wanted if one not in defined)):
        _compile(folder / name, source, versions)
    return missing


def needed_libraries(text: str) -> list[str]:
    """The names of the libraries that one needs, from what ``objdump -p`` prints."""
    return re.findall(r"^\s*NEEDED\s+(\S+)$", text, re.MULTILINE)


def stub_sources(names: list[str], symbols: Iterable[str]) -> list[tuple[str, str, str]]:
    """For each library its name, a C source, and the versions of its symbols for the linker.

    Args:
        symbols: What is to be defined: ``cudaMalloc@libcudart.so.12``, or without a version; that is then in the first
            library.
    """
    found: Mapping[str, dict[tuple[str, str], None]] = defaultdict(dict)
    for symbol in symbols:
        name, _, version = symbol.partition("@")
        if re.fullmatch(r"[A-Za-z_]\w*", name) and not name.startswith("_ZN") and names:
            library = next((one for one in names if _belongs(version, one)), "" if version else names[0])
            found[library][name, version] = None
    return [(name, *_source(list(found[name]))) for name in names]


def _belongs(version: str, library: str) -> bool:
    """Whether a version is one of a library: ``libcudnn.so.9``, or ``NVSHMEM`` of ``libnvshmem_host.so.3``."""
    return bool(version) and (version == library or version.lower() in library.lower())


def _source(symbols: list[tuple[str, str]]) -> tuple[str, str]:
    rows, versions = [], defaultdict(list)
    for name, version in symbols:
        body = 'return "no CUDA";' if name in _TEXTS else f"return {_NO_DEVICE};"
        rows.append(f"{'const char *' if name in _TEXTS else 'int '}{name}(void) {{ {body} }}")
        if version:
            versions[version].append(name)
    script = [f"{version} {{ global: {' '.join(f'{one};' for one in names)} }};" for version, names in versions.items()]
    return "\n".join(rows) + "\n", "\n".join(script)


def _symbols(text: str, kinds: str) -> Iterable[str]:
    for row in text.splitlines():
        name, _, rest = row.partition(" ")
        if rest[:1] in kinds:
            yield name if "U" in kinds else name.partition("@")[0]


def _compile(path: Path, source: str, versions: str) -> None:
    with temporary_folder() as folder:
        written, script = Path(folder, "stub.c"), Path(folder, "stub.map")
        written.write_text(source, encoding="utf-8")
        script.write_text(versions, encoding="utf-8")
        # ``-fno-builtin``: names that the compiler knows may have other types.
        options = ["-shared", "-fPIC", "-w", "-fno-builtin", f"-Wl,-soname,{path.name}"]
        versioned = [f"-Wl,--version-script={script}"] if versions else []
        _run("cc", *options, *versioned, "-o", path, written)


def _run(*command: str | Path) -> str:
    words = [str(one) for one in command]
    try:
        done = run_bounded(words, _SECONDS)
    except FileNotFoundError as error:
        raise StubError(f"{words[0]} is not installed. Install a C compiler and binutils, such as gcc.") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StubError(f"{words[0]} failed: {error}.") from error
    if done.returncode != 0:
        reason = next((line for line in done.stderr.splitlines() if line.strip()), f"exit code {done.returncode}")
        raise StubError(f"{words[0]} failed: {reason}.")
    return done.stdout
