"""Whether a real device got the kernels that were predicted for it: a certificate, kernel by kernel."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from irscope.pipelines.registry import stage_kind
from irscope.protocol import Kernel, Report
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.stages import Role, StageKind
from irscope.vocabulary.units import count

SCHEMA = 1
SAME, RENUMBERED, DIFFERENT, MISSING, UNKNOWN = "same", "renumbered", "different", "missing", "unknown"

_NUMBER_ONLY = "only its number differs, since earlier kernels differ"
_NUMBER = re.compile(r"(\btriton_[a-z]+_fused\w*?)_\d+\b")
_HASH = re.compile(r"'backend_hash': '[0-9A-F]*'")
_PLACES = re.compile(r"\s*\.(version|file|loc)\b|.*\bassertFile_\d+\[")
_METADATA = re.compile(r"\s*(triton_meta|inductor_meta|size_hints|reduction_hint|filename)=")


@dataclass(frozen=True)
class Side:
    """A run's kernels, and how to read more: ``text`` and ``data`` of a stage by its id, which raise LookupError."""

    report: Report
    text: Callable[[str], str]
    data: Callable[[str], Any]

    def below(self, kernel: Kernel, wanted: Callable[[StageKind], bool]) -> str:
        """The id of the first stage of a kind below a kernel.  Raises LookupError if there is none."""
        for compile in self.report.compiles:
            for stage in compile.stages if compile.id == kernel.compile else ():
                if stage.id.startswith(f"{kernel.stage}/") and wanted(stage_kind(stage.name)):
                    return stage.id
        raise LookupError(kernel.stage)

    def triton_kernels(self) -> list[Kernel]:
        """The kernels of Triton's, in order."""
        return [each for each in self.report.kernels if each.language == "triton" and each.is_generated]


@dataclass(frozen=True)
class KernelCheck:
    """One kernel of the real device.

    Args:
        source: ``same`` to the byte but for the hash of PyTorch and Triton, ``renumbered`` if the number in its name
            differs, too, ``different`` from the predicted one of its name, or ``missing``.
        code: The PTX or AMDGCN: ``same`` but for places in files and the version of PTX, ``different``, or ``unknown``
            if the sources differ, the device chose another configuration, or it has none.
        why: What differs; empty if nothing does.
    """

    name: str
    compile: str
    source: str
    code: str
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
    code_compared: int
    code_same: int
    only_predicted: tuple[str, ...]
    checks: tuple[KernelCheck, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing differs."""
        return self.kernels == self.same and self.code_compared == self.code_same and not self.only_predicted


def certify(target: str, device: str, real: Side, predicted: Side) -> Certificate:
    """Compares the kernels of a real run with a prediction (`Report.of_target`)."""
    left = [(kernel, comparable_source(predicted.text(kernel.stage))) for kernel in predicted.triton_kernels()]
    checks = []
    for kernel in real.triton_kernels():
        source = comparable_source(real.text(kernel.stage))
        near = _nearest(kernel.name, source, left)
        if near is None:
            checks.append(KernelCheck(kernel.name, kernel.compile, MISSING, UNKNOWN, "no kernel of this name"))
            continue
        left.remove(near)
        if near[1] != source:
            renumbered = without_number(near[1]) == without_number(source)
            why = _NUMBER_ONLY if renumbered else difference(source, near[1])
            outcome = RENUMBERED if renumbered else DIFFERENT
            checks.append(KernelCheck(kernel.name, kernel.compile, outcome, UNKNOWN, why))
            continue
        code, why = _compared_code(real, kernel, predicted, near[0])
        checks.append(KernelCheck(kernel.name, kernel.compile, SAME, code, why))
    return Certificate(
        SCHEMA, target, device, real.report.script,
        (real.report.torch or "", predicted.report.torch or ""), (_triton(real), _triton(predicted)),
        len(checks), sum(check.source == SAME for check in checks),
        sum(check.code != UNKNOWN for check in checks), sum(check.code == SAME for check in checks),
        tuple(kernel.name for kernel, _ in left), tuple(checks),
    )  # fmt: skip


def _nearest(name: str, source: str, others: Sequence[tuple[Kernel, str]]) -> tuple[Kernel, str] | None:
    """The kernel with this source, else with it but for the number, else of this name."""
    bare = without_number(source)
    return (
        next((other for other in others if other[1] == source), None)
        or next((other for other in others if without_number(other[1]) == bare), None)
        or next((other for other in others if other[0].name == name), None)
    )


def comparable_source(source: str) -> str:
    """A kernel without the hash of PyTorch and Triton."""
    return _HASH.sub("'backend_hash': ''", source).strip()


def without_number(source: str) -> str:
    """A kernel without the number at the end of its name, which counts the kernels before it."""
    return _NUMBER.sub(r"\1", source)


def comparable_code(code: str) -> str:
    """PTX or AMDGCN without the version of PTX, which is the assembler's, places in files, and comments."""
    rows = (row.split("//")[0].rstrip() for row in code.split("\n\t.section", 1)[0].split("\n"))
    return "\n".join(row for row in rows if not _PLACES.match(row))


def _compared_code(real: Side, kernel: Kernel, predicted: Side, other: Kernel) -> tuple[str, str]:
    try:
        configs = [
            side.data(side.below(one, _is_binary))["config"] for side, one in ((real, kernel), (predicted, other))
        ]
        texts = [side.text(side.below(one, _is_code)) for side, one in ((real, kernel), (predicted, other))]
    except (LookupError, TypeError):
        return UNKNOWN, ""
    if configs[0] != configs[1]:
        return UNKNOWN, f"the device chose {configs[0]} by timing, not {configs[1]}"
    first, second = map(comparable_code, texts)
    return (SAME, "") if first == second else (DIFFERENT, f"machine code: {difference(first, second)}")


def _is_binary(kind: StageKind) -> bool:
    return kind.role is Role.BINARY


def _is_code(kind: StageKind) -> bool:
    return kind.is_machine_code


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
            return str(json.loads(side.text(side.below(kernel, _is_binary)))["triton_version"])
        except (LookupError, ValueError):
            continue
    return ""
