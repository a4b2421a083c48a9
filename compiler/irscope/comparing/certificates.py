"""Whether a real device got the kernels that were predicted for it: a certificate, kernel by kernel."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable
from typing import Any

from irscope.protocol import Kernel, Report
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.units import count

SCHEMA = 1
SAME, DIFFERENT, MISSING, UNKNOWN = "same", "different", "missing", "unknown"

_HASH = re.compile(r"'backend_hash': '[0-9A-F]*'")
_PLACES = re.compile(r"\s*\.(version|file|loc)\b|.*\bassertFile_\d+\[")
_METADATA = re.compile(r"\s*(triton_meta|inductor_meta|size_hints|reduction_hint|filename)=")


@dataclass(frozen=True)
class Side:
    """A run's kernels, and how to read more: ``text`` and ``data`` of a stage by its id, which raise LookupError."""

    report: Report
    text: Callable[[str], str]
    data: Callable[[str], Any]

    def triton_kernels(self) -> list[Kernel]:
        """The kernels of Triton's, in order."""
        return [each for each in self.report.kernels if each.language == "triton" and each.is_generated]


@dataclass(frozen=True)
class KernelCheck:
    """One kernel of the real device.

    Parameters
    ----------
    source
        ``same`` to the byte but for the hash of PyTorch and Triton, ``different`` from the predicted one of its name, or
        ``missing``.
    ptx
        ``same`` but for places in files and the version of PTX, ``different``, or ``unknown`` if the sources differ, the
        device chose another configuration, or it has none.
    why
        What differs; empty if nothing does.
    """

    name: str
    compile: str
    source: str
    ptx: str
    why: str


@dataclass(frozen=True)
class Certificate:
    """What came of a comparison; ``torch`` and ``triton`` are versions of the real run and of the prediction."""

    schema: int
    target: str
    device: str
    script: str
    torch: tuple[str, str]
    triton: tuple[str, str]
    kernels: int
    same: int
    ptx_compared: int
    ptx_same: int
    only_predicted: tuple[str, ...]
    checks: tuple[KernelCheck, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing differs."""
        return self.kernels == self.same and self.ptx_compared == self.ptx_same and not self.only_predicted


def certify(target: str, device: str, real: Side, predicted: Side) -> Certificate:
    """Compares the kernels of a real run with a prediction (`Report.of_target`)."""
    left = [(each, comparable_source(predicted.text(each.stage))) for each in predicted.triton_kernels()]
    checks = []
    for kernel in real.triton_kernels():
        source = comparable_source(real.text(kernel.stage))
        found = next((pair for pair in left if pair[1] == source), None)
        near = found or next((pair for pair in left if pair[0].name == kernel.name), None)
        if near is None:
            checks.append(KernelCheck(kernel.name, kernel.compile, MISSING, UNKNOWN, "no kernel of this name"))
            continue
        left.remove(near)
        if found is None:
            why = difference(source, near[1])
            checks.append(KernelCheck(kernel.name, kernel.compile, DIFFERENT, UNKNOWN, why))
            continue
        ptx, why = _compared_ptx(real, kernel, predicted, near[0])
        checks.append(KernelCheck(kernel.name, kernel.compile, SAME, ptx, why))
    return Certificate(
        SCHEMA, target, device, real.report.script,
        (real.report.torch or "", predicted.report.torch or ""), (_triton(real), _triton(predicted)),
        len(checks), sum(each.source == SAME for each in checks),
        sum(each.ptx != UNKNOWN for each in checks), sum(each.ptx == SAME for each in checks),
        tuple(kernel.name for kernel, _ in left), tuple(checks),
    )  # fmt: skip


def comparable_source(source: str) -> str:
    """A kernel without the hash of PyTorch and Triton."""
    return _HASH.sub("'backend_hash': ''", source).strip()


def comparable_ptx(ptx: str) -> str:
    """PTX without its version, which is the assembler's, places in files, and comments."""
    rows = (row.split("//")[0].rstrip() for row in ptx.split("\n\t.section", 1)[0].split("\n"))
    return "\n".join(row for row in rows if not _PLACES.match(row))


def _compared_ptx(real: Side, kernel: Kernel, predicted: Side, other: Kernel) -> tuple[str, str]:
    try:
        configs = [side.data(f"{one.stage}/binary")["config"] for side, one in ((real, kernel), (predicted, other))]
        texts = [side.text(f"{one.stage}/ptx") for side, one in ((real, kernel), (predicted, other))]
    except (LookupError, TypeError):
        return UNKNOWN, ""
    if configs[0] != configs[1]:
        return UNKNOWN, f"the device chose {configs[0]} by timing, not {configs[1]}"
    first, second = map(comparable_ptx, texts)
    return (SAME, "") if first == second else (DIFFERENT, f"PTX: {difference(first, second)}")


def difference(real: str, predicted: str) -> str:
    """What differs between two texts, in words."""
    rows = list(difflib.unified_diff(real.split("\n"), predicted.split("\n"), lineterm="", n=0))[2:]
    removed, added = (
        [row[1:] for row in rows if row[:1] == mark and not _METADATA.match(row[1:])] for mark in ("-", "+")
    )
    if not removed and not added:
        return "only what Inductor writes about the kernel differs, not its code"
    return f"{count(len(removed), 'line')} of the device's and {count(len(added), 'line')} of the prediction differ"


def _triton(side: Side) -> str:
    for kernel in side.triton_kernels():
        try:
            return str(json.loads(side.text(f"{kernel.stage}/binary"))["triton_version"])
        except (LookupError, ValueError):
            continue
    return ""
