"""The lower stages of Triton kernels, as a session writes them: ttir, ttgir, llir, ptx or amdgcn, and the binary.

A kernel that Inductor compiled hangs below its stage in the output code (``0/0/kernel/triton_poi_fused_add_0/ttir``).
One that was launched outside of compiled code belongs to no compile of PyTorch; it gets one of its own, ``triton/1``.

The binary is kept for the disassembler (``irscope.lowering.sass``), which takes too long to be part of a run.
"""

from __future__ import annotations

import base64
import json
import os
import weakref
from typing import Any

from irscope.capture.run_book import RunBook
from irscope.internals.hooks import Hook
from irscope.internals.triton_hooks import inductor_hook, listener_hook
from irscope.ir.kernels import kernels_in
from irscope.ir.line_tables import KernelText, place_of
from irscope.pipeline_captures.inductor.kernels import Kernels
from irscope.pipeline_captures.inductor.triton import (
    BINARIES,
    LaunchedKernel,
    SeenKernel,
    TritonKernel,
    read_inductor_kernel,
    read_launched_kernel,
)
from irscope.pipelines.inductor.stages import KERNEL
from irscope.protocol import CaptureGap, Compile, CompileOutcome, Kernel, Origin
from irscope.vocabulary.records import dataclass

WHAT = "the stages of Triton kernels below their source"
_NAME_OF_KIND = {"source": "ttir-unoptimized"}
_TEXTS = ("source", "ttir", "ttgir", "llir", "ptx", "amdgcn")
_LONGEST = 20_000_000
_NOWHERE = 1 << 30


@dataclass(frozen=True)
class LoweredStage:
    """A stage below a kernel: the last part of its id, its kind's name, and what is kept of it."""

    name: str
    text: str
    data: dict[str, Any]


def lowered_stages(
    kernel: TritonKernel, stage: str, text: str, first_line: int | None = None, has_texts: bool = True
) -> list[LoweredStage]:
    """All that Triton kept of a kernel.

    Args:
        stage, text: The stage of the kernel's source and its text, in which the line tables count.
        first_line: The line of the source file at which the text begins; None: the file holds the text, after empty
            lines.
        has_texts: Whether the texts are wanted; else only the facts about the binary.

    Raises LookupError if Triton kept no stage of it.
    """
    if first_line is None:
        first_line = _line_of_text(kernel.source_file, text)
    place = KernelText(kernel.source_file, first_line, text.count("\n") + 1)
    stages = []
    for kind in _TEXTS if has_texts else ():
        if (written := _read(kernel.files.get(kind))) is not None:
            name = _NAME_OF_KIND.get(kind, kind)
            stages.append(LoweredStage(name, written, {**place_of(place), "source": stage}))
    binary = next((kind for kind in BINARIES if kind in kernel.files), None)
    if binary is not None and (metadata := _read(kernel.files.get("json"))) is not None:
        stages.append(LoweredStage("binary", _readable(metadata), _of_binary(kernel, binary, place)))
    if not stages and has_texts:
        raise LookupError(f"Triton's cache holds nothing of {kernel.name}")
    return stages


def _of_binary(kernel: TritonKernel, kind: str, place: KernelText) -> dict[str, Any]:
    with open(kernel.files[kind], "rb") as file:
        content = file.read(_LONGEST)
    return {
        "format": kind,
        "base64": base64.b64encode(content).decode(),
        "file": place.file,
        "first_line": place.first_line,
        "lines": place.lines,
        "config": kernel.config,
        "configs": kernel.configs,
        "options": kernel.options,
        **(kernel.facts or {}),
    }


def _line_of_text(path: str, text: str) -> int:
    """The 1-based line of a file at which a kernel's text begins; past all lines where it is not in it."""
    written = _read(path) or ""
    if written.strip() != text.strip():
        return _NOWHERE
    return 1 + written[: len(written) - len(written.lstrip())].count("\n")


def _read(path: str | None) -> str | None:
    if not path or not os.path.isfile(path):
        return None
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read(_LONGEST)


def _readable(metadata: str) -> str:
    try:
        return json.dumps(json.loads(metadata), indent=1, sort_keys=True) + "\n"
    except ValueError:
        return metadata


def compile_of(launched: LaunchedKernel, number: int) -> Compile:
    """The compile that a kernel stands for which belongs to none."""
    return Compile(
        id=f"triton/{number}",
        function=launched.kernel.name,
        file=launched.kernel.source_file,
        line=launched.line,
        outcome=CompileOutcome.COMPILED,
        restarts=0,
        graph_ops=0,
        seconds=round(launched.seconds, 6),
        reasons=(),
    )


def kernel_of(launched: LaunchedKernel, compile: str) -> Kernel:
    """The kernel that was launched; its origin is the place of its source, none if the file is not known."""
    file = launched.kernel.source_file
    origins = (Origin(file, launched.line),) if file else ()
    return Kernel(launched.kernel.name, "triton", compile, f"{compile}/kernel/{launched.kernel.name}", origins)


def _text_of(kernel: Kernel, output_code: str) -> str:
    return next((source.text for source in kernels_in(output_code) if source.name == kernel.name), "")


class TritonStages:
    """Writes what `irscope.pipeline_captures.inductor.triton` sees into a run."""

    def __init__(self, book: RunBook, kernels: Kernels) -> None:
        self._book, self._kernels = book, kernels
        self._kernel_of: weakref.WeakKeyDictionary[Any, tuple[Kernel, str]] = weakref.WeakKeyDictionary()
        self._files_of: weakref.WeakKeyDictionary[Any, dict[str, str]] = weakref.WeakKeyDictionary()
        self._unclaimed: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
        self._undecided: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()
        """The launchers of kernels of which several configurations are loaded and none is chosen yet."""
        self._launched = 0

    def hooks(self) -> list[Hook]:
        """What has to be hooked for it, in the deep lane; the fast one ends above the kernels."""
        guarded = self._book.guarded
        return [inductor_hook(guarded(self._tuner_loaded)), listener_hook(guarded(self.launched))]

    def _tuner_loaded(self, tuner: Any, launchers: list[Any]) -> None:
        self.inductor_loaded(SeenKernel(tuner, launchers))

    def inductor_loaded(self, seen: SeenKernel) -> None:
        """One of Inductor's kernels was loaded, or its configuration chosen."""
        self._loaded(seen, None)

    def finish(self) -> None:
        """Writes the kernels of which no configuration was chosen: they were compiled, and never called."""
        for tuner, launchers in list(self._undecided.items()):
            self._loaded(SeenKernel(tuner, launchers), None, is_last=True)
        self._undecided.clear()

    def written(self, kernels: list[Kernel], output_code: str) -> None:
        """Output code was written, with these kernels in it.

        A hit in one of PyTorch's caches loads the kernels before it tells their output code.
        """
        for kernel in kernels:
            tuner = self._unclaimed.pop(kernel.name, None)
            if launchers := list(getattr(tuner, "launchers", ())):
                self._loaded(SeenKernel(tuner, launchers), (kernel, output_code))

    def _loaded(self, seen: SeenKernel, claimed_by: tuple[Kernel, str] | None, is_last: bool = False) -> None:
        name = "one of them"
        try:
            # Autotuning happens when the kernel is first called, which is not part of a compile.
            found = self._kernel_of.get(seen.tuner)
            kernel = read_inductor_kernel(seen)
            name = kernel.name
            if found is None:
                found = self._kernels.named(name)
            # Another kernel may have had this name.
            if found is None and claimed_by and _line_of_text(kernel.source_file, _text_of(*claimed_by)) != _NOWHERE:
                found = claimed_by
            if found is None:
                self._unclaimed[name] = seen.tuner
                return
            # A tuner tells again when it has chosen, often what it had loaded first.
            self._kernel_of[seen.tuner] = found
            if kernel.configs > 1 and not is_last:  # only the one that is chosen is written, at the first call
                self._undecided[seen.tuner] = seen.launchers
                return
            self._undecided.pop(seen.tuner, None)
            is_new = self._files_of.get(seen.tuner) != kernel.files
            self._files_of[seen.tuner] = kernel.files
            self._write(found[0], lowered_stages(kernel, found[0].stage, _text_of(*found), has_texts=is_new))
        except Exception as error:  # noqa: BLE001  what Triton or Inductor hold may be anything
            self._book.gap(CaptureGap(f"{WHAT}: {name}", f"{type(error).__name__}: {error}"))

    def launched(self, facts: dict[str, Any]) -> None:
        """A kernel was compiled, or found in Triton's cache, outside of compiled code."""
        name = "one of them"
        try:
            launched = read_launched_kernel(facts)
            name = launched.kernel.name
            self._launched += 1
            compile = compile_of(launched, self._launched)
            kernel = kernel_of(launched, compile.id)
            self._book.put_compile(compile)
            data = {"file": launched.kernel.source_file, "first_line": launched.line, "cache_hit": launched.cache_hit}
            self._book.write_stage(compile.id, KERNEL.name, kernel.stage, launched.text, data, language="python")
            self._book.put_kernels([kernel])
            self._write(kernel, lowered_stages(launched.kernel, kernel.stage, launched.text, launched.line))
        except Exception as error:  # noqa: BLE001  as above
            self._book.gap(CaptureGap(f"{WHAT}: {name}", f"{type(error).__name__}: {error}"))

    def _write(self, kernel: Kernel, stages: list[LoweredStage]) -> None:
        backward = "/kernel-backward" in kernel.stage
        for stage in stages:
            id = f"{kernel.stage}/{stage.name}"
            self._book.write_stage(kernel.compile, stage.name, id, stage.text, stage.data, backward=backward)
