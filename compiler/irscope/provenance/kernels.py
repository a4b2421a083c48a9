"""The user's lines of kernels, where PyTorch's own record has none."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from irscope.protocol import Kernel, StageRef
from irscope.provenance import Element, Provenance, chain
from irscope.store.store import Store


def output_code_of(codes: Mapping[str, StageRef], kernel: Kernel) -> str:
    """ID of the code that defines a kernel, or calls an extern one; `codes` as `chain.codes_by_folder` gives them."""
    code = codes.get(chain.folder_of(kernel.stage))
    return kernel.stage if code is None else code.id


def elements_of(thread: Provenance, kernel: Kernel) -> list[Element]:
    """The definition and the calls of a kernel in its output code."""
    try:
        elements = thread.elements(output_code_of(thread.codes, kernel))
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
