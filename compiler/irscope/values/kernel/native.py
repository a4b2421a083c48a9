"""Runs one C++ kernel that was compiled with sanitizers, in this process, into which their library was loaded."""

from __future__ import annotations

import ctypes
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from irscope.values.kernel.memory import NON_FINITE, OUT_OF_BOUNDS_READ, OUT_OF_BOUNDS_WRITE, UNDEFINED, Checks

_ADDRESS = re.compile(r"ERROR: AddressSanitizer: .*?\n(?P<kind>READ|WRITE) of size (?P<size>\d+).*?kernel\.cpp:(?P<line>\d+)", re.DOTALL)  # fmt: skip
_BEHAVIOUR = re.compile(r"kernel\.cpp:(?P<line>\d+)(?::\d+)?: runtime error: (?P<what>[^\n]*)")


class NativeKernel:
    """A C++ kernel, with what `irscope.values.kernel.interpreter.Interpreter` has for the process that runs it.

    Args:
        library: The shared library.
    """

    def __init__(self, library: str, parameters: Sequence[str]) -> None:
        self._library, self._parameters = library, parameters
        self.tree, self.code = None, None

    def run(
        self,
        arguments: Mapping[str, Any],
        grid: Sequence[int],
        programs: Sequence[tuple[int, int, int]],
        checks: Checks,
        before: Callable[[int], bool],
        around: object = None,
    ) -> None:
        """Calls the kernel once, and tells the checks what was found."""
        loaded = ctypes.CDLL(self._library)
        given = [arguments[name] for name in self._parameters]
        before(0)
        pointers = [ctypes.c_void_p(each.data_ptr()) if hasattr(each, "data_ptr") else ctypes.c_int64(each) for each in given]  # fmt: skip
        said = self._heard(lambda: loaded.kernel(*pointers))
        for region in checks.regions:
            region.written[:] = region.stored[:] = [region.argument.rpartition("in_ptr")[1] == ""] * len(region.stored)
        if line := ctypes.c_int64.in_dll(loaded, "irscope_line").value:
            start = ctypes.c_void_p.in_dll(loaded, "irscope_start").value
            name = next((key for key, each in arguments.items() if hasattr(each, "data_ptr") and each.data_ptr() == start), "")  # fmt: skip
            index = ctypes.c_int64.in_dll(loaded, "irscope_index").value
            checks.line = lambda: line
            checks.tell(NON_FINITE, f"{name}[{index}]", index, 1, "the first that is stored")
        for found in _ADDRESS.finditer(said):
            checks.line = lambda found=found: int(found["line"])  # type: ignore[misc]
            kind = OUT_OF_BOUNDS_READ if found["kind"] == "READ" else OUT_OF_BOUNDS_WRITE
            checks.tell(kind, "its memory", 0, 1, f"{found['size']} bytes")
        for found in _BEHAVIOUR.finditer(said):
            checks.line = lambda found=found: int(found["line"])  # type: ignore[misc]
            checks.tell(UNDEFINED, "", 0, 1, found["what"])

    @staticmethod
    def _heard(call: Callable[[], object]) -> str:
        """What the sanitizers write to standard error during a call."""
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as file:
            kept = os.dup(2)
            os.dup2(file.fileno(), 2)
            try:
                call()
            finally:
                os.dup2(kept, 2)
                os.close(kept)
            file.seek(0)
            return file.read(_MOST_SAID)


_MOST_SAID = 1_000_000
