"""What tells a kernel from its neighbours in a list: its operations, its module, and forward or backward."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from irscope.protocol import Kernel, Report
from irscope.provenance.kernel_groups import groups_of
from irscope.provenance.kernel_paths import KernelPath, KernelPaths
from irscope.store.store import Store

from irscope_server.base.results import KernelChoice, Place
from irscope_server.stages.tree import TextOf, UriOf, kernel_items


def kernel_choices(
    store: Store, report: Report, kernels: Sequence[Kernel], uri_of: UriOf, text_of: TextOf
) -> tuple[KernelChoice, ...]:
    """Kernels as a client lists them for a choice, those of a module together."""
    paths = KernelPaths(store, report)
    compiles = {compile.id: compile.title for compile in report.with_predictions}
    bytes_of = {stage.id: stage.bytes for compile in report.compiles for stage in compile.stages}
    known: dict[Kernel, KernelPath] = {}
    for kernel in kernels:
        path = paths.of(kernel)
        module, module_class = path.modules[-1] if path.modules else ("", "")
        known[dataclasses.replace(kernel, module=module, module_class=module_class)] = path
    headed = [(group.title, kernel) for group in groups_of(known, compiles) for kernel in group.kernels]
    items = kernel_items(report, [kernel for _, kernel in headed], uri_of, text_of)
    choices = []
    for (heading, kernel), item in zip(headed, items, strict=True):
        path, inner = known[kernel], known[kernel].innermost
        choices.append(
            KernelChoice(
                **vars(item),
                function=compiles.get(kernel.compile, ""),
                ops=path.ops,
                module=kernel.module,
                module_class=kernel.module_class,
                heading=heading,
                innermost=None if inner is None else Place(uri_of(inner.file), inner.line - 1),
                direction=path.direction,
                bytes=bytes_of.get(kernel.stage, 0) if kernel.is_generated else 0,
            )
        )
    return tuple(choices)
