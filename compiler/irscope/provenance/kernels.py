"""The user's lines of kernels, where PyTorch's own record has none."""

from __future__ import annotations

import dataclasses

from irscope.protocol import Kernel
from irscope.provenance import Element, Provenance
from irscope.store import Store


def output_code_of(kernel: Kernel) -> str:
    """Id of the output code that defines a kernel, or calls an extern one."""
    if "/kernel" not in kernel.stage:
        return kernel.stage
    return kernel.stage.rpartition("/")[0].replace("/kernel", "/output-code")


def elements_of(thread: Provenance, kernel: Kernel) -> list[Element]:
    """The definition and the calls of a kernel in its output code."""
    try:
        elements = thread.elements(output_code_of(kernel))
    except LookupError:
        return []
    return [one for one in elements if kernel.name in (one.name, one.name.rpartition(":")[0])]


def add_missing_origins(store: Store, run: str) -> None:
    """Gives lines to the kernels of a run that have none.

    PyTorch's stacks of a kernel are those of its nodes; a kernel of the backward may have none, while the forward
    operation that its nodes belong to has a line.
    """
    report = store.report(run)
    missing = [kernel for kernel in report.kernels if not kernel.origins]
    if not missing:
        return
    thread = Provenance(store, report)
    with store.transaction():
        for kernel in missing:
            origins = dict.fromkeys(line for one in elements_of(thread, kernel) for line in thread.origins(one))
            if origins:
                store.put_kernel(run, dataclasses.replace(kernel, origins=tuple(sorted(origins))))
