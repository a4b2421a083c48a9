"""Kernels in Triton that the script launches outside of compiled code, for devices that are not here.

The launch itself is interpreted on the CPU (`irscope.internals.triton_on_cpu`).  Each kernel gets its own compile,
``triton/1``, and below it what Triton makes of it for a target, in the configuration of the launch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from irscope.capture.run_book import RunBook
from irscope.internals.triton_hooks import facts_of_compile
from irscope.internals.triton_on_cpu import Launch
from irscope.pipeline_captures.inductor.kernel_resources import spills_of
from irscope.pipeline_captures.inductor.triton import read_launched_kernel
from irscope.pipeline_captures.inductor.triton_stages import lowered_stages
from irscope.pipelines.inductor.stages import KERNEL
from irscope.protocol import Compile, CompileOutcome, Kernel, Origin

MOST = 20
"""Kernels of one run; one with other types of arguments is another kernel."""


class Launches:
    """The launches that a run has seen."""

    def __init__(self) -> None:
        self._seen: set[Any] = set()
        self.compiles: dict[str, Compile] = {}
        """By ID the compile that each kernel stands for."""

    def new(self, launch: Launch) -> tuple[str, Origin] | None:
        """The ID of a kernel that was not launched before, and the line that launches it; None for all others."""
        if launch.key in self._seen or len(self._seen) > MOST:
            return None
        self._seen.add(launch.key)
        id = f"triton/{len(self._seen)}"
        self.compiles[id] = Compile(id, launch.name, launch.file, launch.line, CompileOutcome.COMPILED, 0, 0, 0.0)
        return id, Origin(launch.file, launch.line)

    @property
    def are_too_many(self) -> bool:
        """Whether there are more than are predicted."""
        return len(self._seen) > MOST


def compile_kernel(book: RunBook, compile: str, place: Origin, compile_it: Callable[[], Any]) -> None:
    """In a child that has become the target: compiles a kernel and writes its source and its stages.

    Args:
        compile: The ID of its compile for this target.
        place: The line that launches it.

    Raises what Triton raises.
    """
    launched = read_launched_kernel(facts_of_compile(compile_it))
    launched = dataclasses.replace(
        launched, kernel=dataclasses.replace(launched.kernel, facts=spills_of(launched.kernel.files))
    )
    stage = f"{compile}/{KERNEL.name}/{launched.kernel.name}"
    data = {"file": launched.kernel.source_file, "first_line": launched.line}
    book.write_stage(compile, KERNEL.name, stage, launched.text, data, language="python")
    home = Origin(launched.kernel.source_file, launched.line)
    book.put_kernels([Kernel(launched.kernel.name, "triton", compile, stage, (place, home))])
    for lowered in lowered_stages(launched.kernel, stage, launched.text, launched.line):
        book.write_stage(compile, lowered.name, f"{stage}/{lowered.name}", lowered.text, lowered.data)
