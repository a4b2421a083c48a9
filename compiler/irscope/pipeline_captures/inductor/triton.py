"""What Triton compiled: where its stages lie, for Inductor's kernels and for those that people write and launch.

Triton keeps all stages of a kernel in a folder of its cache (``ttir``, ``ttgir``, ``llir``, ``ptx``, ``cubin``, and
``json``: how it was compiled).  So nothing needs to be seen at the moment of compilation, which for Inductor's kernels
happens in other processes, or happened in an earlier run: what is needed is the folder of each kernel that is loaded.
"""

from __future__ import annotations

import os
import re
from typing import Any

from irscope.internals.inductor_calls import triton_cache_folder
from irscope.vocabulary.records import dataclass

BINARIES = ("cubin", "hsaco")
_FIRST_PLACE = re.compile(r'#loc = loc\("([^"]+)":\d+:\d+\)')


@dataclass(frozen=True)
class TritonKernel:
    """A compiled kernel.

    Args:
        name: For one of Inductor's, its name in the output code; else its function's name.
        files: What Triton kept: kind (``ttir``, ``ptx``, ``cubin``, ``json``, …) → path.
        source_file: The file that the locations in the stages name.
        config: Block sizes and warps that Inductor chose, as printed; empty for a kernel that Inductor did not compile.
        configs: Between how many of them Inductor still has to choose, by timing; 1 when it is decided.
        options: All of its configurations, as printed, where they are known.
        facts: What loading the binary told: registers and spills of a thread, bytes of shared memory.
    """

    name: str
    files: dict[str, str]
    source_file: str
    config: str = ""
    configs: int = 1
    facts: dict[str, int] | None = None
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class LaunchedKernel:
    """A kernel that was compiled because the script, or a library, launched it outside of compiled code.

    Args:
        text: The function with its decorators, as it is in its file from ``line`` on.
        seconds: What it took; almost 0 with ``cache_hit``.
    """

    kernel: TritonKernel
    text: str
    line: int
    seconds: float
    cache_hit: bool


# --- Inductor's kernels -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SeenKernel:
    """One of Inductor's tuners with its launchers, not yet read: `read_inductor_kernel` does that, and may raise."""

    tuner: Any
    launchers: list[Any]


def read_inductor_kernel(seen: SeenKernel) -> TritonKernel:
    """Raises AttributeError or OSError where a tuner is not as expected."""
    tuner, launcher = seen.tuner, seen.launchers[0]
    folder = os.path.join(_cache_folder(tuner), launcher.cache_hash)
    function = tuner.fn.__name__
    names = ("n_regs", "n_spills", "shared")
    facts = {name: value for name in names if isinstance(value := getattr(launcher, name, None), int)}
    files = files_in(folder, function)
    return TritonKernel(
        name=str(tuner.inductor_meta.get("kernel_name") or function),
        files=files,
        source_file=str(tuner.filename or "") or _file_named_in(files),  # a template's tuner does not know its file
        config=str(launcher.config),
        configs=len(seen.launchers),
        facts=facts,
    )


def _cache_folder(tuner: Any) -> str:
    return triton_cache_folder(tuner.triton_meta.get("device", 0))


def files_in(folder: str, function: str) -> dict[str, str]:
    """What a folder of Triton's cache has of a function: kind → path.  Raises OSError."""
    found = {}
    for name in os.listdir(folder):
        stem, _, kind = name.rpartition(".")
        if stem == function[:150]:  # Triton shortens longer names
            found[kind] = os.path.join(folder, name)
    return found


def _file_named_in(files: dict[str, str]) -> str:
    """The file of the kernel's function, which is the first location in Triton's IR: ``#loc = loc("/a/b.py":18:0)``."""
    if "ttir" not in files:
        return ""
    with open(files["ttir"], encoding="utf-8", errors="replace") as file:
        match = _FIRST_PLACE.match(file.readline())
    return match[1] if match else ""


# --- kernels that are launched outside of compiled code ---------------------------------------------------------------


def read_launched_kernel(facts: dict[str, Any]) -> LaunchedKernel:
    """What `listener_hook` calls back with, read.  Raises AttributeError or KeyError where it is not as expected."""
    source = facts["src"]
    function = getattr(source, "fn", None)
    code = getattr(getattr(function, "fn", None), "__code__", None)
    files = {name.rpartition(".")[2]: path for name, path in facts["metadata_group"].items()}
    kernel = TritonKernel(
        name=str(source.name),
        files=files,
        source_file=str(getattr(code, "co_filename", "") or getattr(source, "path", "")),
    )
    if function is None:  # compiled from a file of Triton's IR
        return LaunchedKernel(kernel, str(getattr(source, "src", "")), 1, _seconds(facts), bool(facts["cache_hit"]))
    return LaunchedKernel(
        kernel=kernel,
        text="".join(function.raw_src),
        line=int(function.starting_line_number),
        seconds=_seconds(facts),
        cache_hit=bool(facts["cache_hit"]),
    )


def _seconds(facts: dict[str, Any]) -> float:
    return float(getattr(facts.get("times"), "total", 0)) / 1e6
