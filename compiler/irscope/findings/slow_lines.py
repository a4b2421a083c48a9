"""The findings of a profile: lines whose measured time is far from what is possible, where a reason is known.

A reason is something that the run or the profile says, never a guess from the time alone.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator, Mapping

from irscope.findings.kinds import graph_break, host_sync, missed_fusion, recompilation, recompile_limit, slow_line
from irscope.ir.roofline import TARGETS, Peaks
from irscope.profiling.profile import MeasuredKernel, MeasuredLine, Profile
from irscope.profiling.timeline import Kind
from irscope.protocol import Finding, Range, Related, Report, Severity
from irscope.usercode.source import range_of_line
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.units import duration, percent, significant

_MOST = 5
"""The most lines of a file: those that lose the most time."""
_FAR = 2.0
"""Times what is possible."""
_LEAST_SHARE = 0.03
"""The least share of a step: what is lost there must be worth a change."""
_IDLE, _LAUNCHING = 0.5, 0.25
"""Shares of a step from which on launches are what it waits for."""
_TENSOR_CORES = 4.0
"""How many times faster half precision must be than float32, for the device to have tensor cores that TF32 uses."""
_MOVING = frozenset(
    {"clone", "copy", "contiguous", "transpose", "permute", "view", "t", "expand", "slice", "unsqueeze", "squeeze"}
)
"""Operations in the name of a generated kernel that only moves values to another layout."""
_FUSED = re.compile(r"(?:triton|cpp)_\w*?fused_(?P<ops>\w+?)_\d+\Z")
_PRODUCT = re.compile(r"mm\b|mm_|convolution|_tem_")
_PLACE = re.compile(r"(?P<file>.+):(?P<line>\d+)\Z")


@dataclass(frozen=True)
class _Slow:
    """A line that loses time for a reason."""

    file: str
    line: int
    lost: float
    code: str
    message: str
    hints: tuple[str, ...]
    compiles: tuple[str, ...] = ()
    related: tuple[Related, ...] = ()
    range: Range | None = None


def slow_lines(profile: Profile, report: Report) -> list[Finding]:
    """The findings of a profile, at most five a file; empty if no reason is known."""
    step = profile.step_seconds
    if step <= 0:
        return []
    found = [*_by_kernels(profile, report), *_by_host(profile, report)]
    kept: dict[tuple[str, int], _Slow] = {}
    for one in sorted(found, key=lambda each: -each.lost):
        if one.lost >= _LEAST_SHARE * step and is_user_file(one.file):
            kept.setdefault((one.file, one.line), one)
    numbers = Counter[str]()
    chosen = []
    for one in kept.values():
        numbers[one.file] += 1
        if numbers[one.file] <= _MOST:
            chosen.append(_finding(one))
    return chosen


def with_costs(profile: Profile, report: Report) -> list[Finding]:
    """The graph breaks that PyTorch asks for, each with what it was measured to take; without those that took no time."""
    costs = {(cost.file, cost.line, cost.code): cost.words for cost in profile.breaks}
    return [
        dataclasses.replace(finding, message=f"{finding.message} It takes {words}.")
        for finding in report.findings
        if finding.kind == graph_break.KIND.id and finding.severity is Severity.HINT
        if (words := costs.get((finding.file, finding.range.start.line, finding.code)))
    ]


def _finding(one: _Slow) -> Finding:
    where = one.range or range_of_line(one.file, one.line)
    explanation = "Measured by `irscope profile`; the Time panel and `irscope show` have all lines and kernels."
    return Finding(
        slow_line.KIND.id, one.code, slow_line.KIND.severity, one.message, explanation, one.hints, None, one.file, where, 1,
        one.compiles, one.related,
    )  # fmt: skip


# --- kernels ----------------------------------------------------------------------------------------------------------


def _by_kernels(profile: Profile, report: Report) -> Iterator[_Slow]:
    """Lines whose kernels are far from their bounds."""
    peaks = next((one for one in TARGETS.values() if one.name == profile.peaks), None)
    kernels: dict[tuple[str, int], list[MeasuredKernel]] = {}
    for kernel in profile.kernels:
        for origin in dict.fromkeys(kernel.origins):
            kernels.setdefault((origin.file, origin.line), []).append(kernel)
    for line in profile.lines:
        mine = kernels.get((line.file, line.line), [])
        if peaks is not None and (slow := _without_tf32(profile, line, mine, peaks)) is not None:
            yield slow
        if not line.bound_seconds or line.seconds < _FAR * line.bound_seconds:  # 0: what it costs is not known either
            continue
        lost = line.seconds - line.bound_seconds
        head = f"{_head(line.seconds, profile)}, {significant(line.seconds / line.bound_seconds, 2)} times what is possible ({duration(line.bound_seconds)})"
        compiles = tuple(dict.fromkeys(_compile_of(one) for one in mine if one.stage))
        if (refusal := _refusal(report, line)) is not None:
            related = (Related(refusal.file, refusal.range, "why it was not fused"),)
            yield _Slow(
                line.file, line.line, lost, "slow-line-missed-fusion", f"{head}: its kernels were not fused. {refusal.message}",
                refusal.hints, compiles, related,
            )  # fmt: skip
        elif (moved := _layout_conversion(mine)) is not None:
            yield _Slow(
                line.file, line.line, lost, "slow-line-layout",
                f"{head}: `{moved.name}` only moves values to another layout, for {duration(moved.seconds)}.",
                ("Make the tensor in the layout that the operation after it reads, for example with "
                 "`memory_format=torch.channels_last` or without `.contiguous()` and `.transpose()` in between.",),
                compiles,
            )  # fmt: skip


def _refusal(report: Report, line: MeasuredLine) -> Finding | None:
    """The missed fusion at a line, or whose producer it is."""
    for one in report.findings:
        if one.kind == missed_fusion.KIND.id:
            places = [(one.file, one.range), *((each.file, each.range) for each in one.related)]
            if any(file == line.file and at.start.line <= line.line <= at.end.line for file, at in places):
                return one
    return None


def _layout_conversion(kernels: list[MeasuredKernel]) -> MeasuredKernel | None:
    """The kernel that only moves values and takes at least half of the line's time."""
    whole = sum(one.seconds for one in kernels)
    for one in kernels:
        match = _FUSED.match(one.name)
        if match is None or one.seconds < whole / 2:
            continue
        if set(match["ops"].strip("_").split("_")) <= _MOVING:
            return one
    return None


def _without_tf32(profile: Profile, line: MeasuredLine, kernels: list[MeasuredKernel], peaks: Peaks) -> _Slow | None:
    """Products in float32 on a device whose tensor cores would do them with TF32.

    TF32 has half the rate of bfloat16 on NVIDIA's tensor cores, by their data sheets.  What is faster than the plain
    units can be uses TF32 already.
    """
    plain, half = peaks.flops["float32"], peaks.flops.get("bfloat16", 0.0)
    if not peaks.name.startswith("NVIDIA") or half < _TENSOR_CORES * plain:
        return None
    slow = [
        one
        for one in kernels
        if one.dtype == "float32" and one.flops and _PRODUCT.search(one.name) and one.flops / one.seconds <= plain
    ]
    seconds, flops = sum(one.seconds for one in slow), sum(one.flops or 0.0 for one in slow)
    possible = 2 * flops / half
    # A kernel of several lines counts in each: no more than the line's own time is lost there.
    part = min(1.0, line.seconds / seconds) if seconds else 0.0
    if not slow or seconds < _FAR * possible:
        return None
    return _Slow(
        line.file, line.line, part * (seconds - possible), "slow-line-tf32",
        f"{_head(line.seconds, profile)}: its products take {duration(seconds)} in float32 without TF32. With TF32 the least time is "
        f"{duration(possible)} on {peaks.name}.",
        ("If 10 bits of mantissa are enough for products: `torch.set_float32_matmul_precision('high')`, and for convolutions "
         "`torch.backends.cudnn.allow_tf32 = True`.", "Or use bfloat16: `torch.autocast('cuda', torch.bfloat16)`."),
        tuple(dict.fromkeys(_compile_of(one) for one in slow if one.stage)),
    )  # fmt: skip


# --- the host ---------------------------------------------------------------------------------------------------------


def _by_host(profile: Profile, report: Report) -> Iterator[_Slow]:
    """Lines at which the device waits for the host."""
    gaps: dict[tuple[str, str], float] = {}
    for gap in profile.gaps:
        gaps[gap.kind, gap.where] = gaps.get((gap.kind, gap.where), 0.0) + gap.seconds
    idle = (profile.idle_device_seconds or 0.0) / profile.profiled_seconds if profile.profiled_seconds else 0.0
    if profile.idle_device_seconds is not None and idle >= _IDLE and not profile.cuda_graphs.replayed:
        yield from _launches(profile, gaps, idle)
    waiting = sum(seconds for (kind, _), seconds in gaps.items() if kind in (Kind.WAITING.value, Kind.COPY.value))
    syncs = [one for one in report.findings if one.kind == host_sync.KIND.id]
    if syncs and profile.idle_device_seconds is not None:
        one = syncs[0]
        yield _Slow(
            one.file, one.range.start.line, waiting, "slow-line-host-sync",
            f"A step waits {duration(waiting)} of {duration(profile.step_seconds)} ({percent(waiting, profile.step_seconds)}) for the "
            "device and for copies: this line reads a value on the host.",
            one.hints, one.compiles, (), one.range,
        )  # fmt: skip
    unknown = sum(seconds for (kind, _), seconds in gaps.items() if kind == "unknown")
    storm = [one for one in report.findings if one.kind in (recompile_limit.KIND.id, recompilation.KIND.id)]
    storm.sort(key=lambda each: (each.kind != recompile_limit.KIND.id, -each.count))
    if storm:
        one = storm[0]
        yield _Slow(
            one.file, one.range.start.line, unknown, "slow-line-recompilation",
            f"{duration(unknown)} of a step ({percent(unknown, profile.step_seconds)}) is in code that was compiled again while it was "
            f"measured: {one.message}",
            one.hints, one.compiles, (), one.range,
        )  # fmt: skip


def _launches(profile: Profile, gaps: Mapping[tuple[str, str], float], idle: float) -> Iterator[_Slow]:
    """Compiled functions whose kernels are over sooner than the next one is launched."""
    step = profile.step_seconds
    by_file: dict[str, Counter[int]] = {}
    for (kind, where), seconds in gaps.items():
        match = _PLACE.match(where) if kind in (Kind.LAUNCH.value, Kind.WRAPPER.value) else None
        if match is not None:
            nanoseconds = by_file.setdefault(match["file"], Counter())
            nanoseconds[int(match["line"])] += round(1e9 * seconds)
    for file, lines in by_file.items():
        seconds = lines.total() / 1e9
        if seconds < _LAUNCHING * step:
            continue
        why = next((f" Here it was skipped: {one.why}" for one in profile.cuda_graphs.skipped), "")
        yield _Slow(
            file, lines.most_common(1)[0][0], seconds, "slow-line-launches",
            f"Launching kernels takes {duration(seconds)} of a step of {duration(step)} ({percent(seconds, step)}), and the device does "
            f"nothing for {percent(idle)} of it: the kernels are small. A CUDA graph launches them at once.{why}",
            ("If the shapes stay the same: `torch.compile(…, mode='reduce-overhead')`.", "Or give each call more work: a larger batch."),
        )  # fmt: skip


def _head(seconds: float, profile: Profile) -> str:
    step = profile.step_seconds
    return f"This line takes {duration(seconds)} of a step of {duration(step)} ({percent(seconds, step)})"


def _compile_of(kernel: MeasuredKernel) -> str:
    return kernel.stage.rpartition("/")[0]
