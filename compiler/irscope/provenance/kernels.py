"""The kernels of lines, and the lines of kernels for which PyTorch's own record has none."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping

from irscope.protocol import Kernel, Origin, Report, StageRef
from irscope.provenance import Element, Provenance, chain
from irscope.store.store import Store
from irscope.usercode.user_files import is_package_file, is_user_file


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


def kernels_by_line(report: Report) -> dict[Origin, list[Kernel]]:
    """The kernels of each line: those that it led to, and those of all compiled code that it calls, with its backward;
    of a line that runs the backward those of that."""
    found: dict[Origin, dict[Kernel, None]] = defaultdict(dict)
    callers = {compile.id: (compile.callers, compile.backward_callers) for compile in report.compiles}
    for kernel in report.kernels:
        forward, backward = callers.get(kernel.compile, ((), ()))
        for line in (
            *kernel.origins,
            *(Origin(part.file, line) for part in kernel.lines for line in part.lines),
            *forward,
            *(backward if chain.is_of_backward(kernel.stage) else ()),
        ):
            found[line][kernel] = None
    return {line: list(kernels) for line, kernels in found.items()}


def add_missing_origins(store: Store, run: str) -> None:
    """Gives lines to the kernels of a run that have none.

    PyTorch's stacks of a kernel are those of its nodes; a kernel of the backward may have none, while the forward
    operation that its nodes belong to has a line.  Where all lines are torch's own, as in a layer of ``torch.nn`` that is
    compiled itself, it is the line that calls the compiled code.
    """
    report = store.report(run)
    missing = [kernel for kernel in report.kernels if not kernel.origins]
    if not missing:
        return
    thread = Provenance(store, report)
    callers = {compile.id: (compile.callers, compile.backward_callers) for compile in report.compiles}
    with store.transaction():
        for kernel in missing:
            origins = {line for one in elements_of(thread, kernel) for line in thread.origins(one)}
            origins = {line for line in origins if is_user_file(line.file) or is_package_file(line.file)}
            if not origins:
                origins.update(callers.get(kernel.compile, ((), ()))[chain.is_of_backward(kernel.stage)][:1])
            if origins:
                store.put_kernel(run, dataclasses.replace(kernel, origins=tuple(sorted(origins))))
