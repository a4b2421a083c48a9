"""``irscope fix``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from irscope.cli.text import to_stdout
from irscope.comparing.texts import diff_of
from irscope.driver.driver import RunSpec
from irscope.driver.fixing.candidates import Candidate, Patch, Together, Tried
from irscope.driver.fixing.combining import combined
from irscope.driver.fixing.trying import Trying
from irscope.driver.fixing.writing import write
from irscope.driver.hints import gains_of, tried_hints
from irscope.driver.trials.gains import ROUNDS, MeasuredGain, measure
from irscope.driver.trials.proving import Prover, Status
from irscope.driver.trials.static_sizes import StaticSizes, measured_static_sizes
from irscope.fixing.texts import applied
from irscope.protocol import Finding, OutcomeKind, to_json
from irscope.usercode.reading import read_bounded
from irscope.usercode.source import decode_source
from irscope.usercode.writing import write_files
from irscope.vocabulary import units
from irscope.vocabulary.visible import printable
from irscope.worker.client import Worker

_UNPROVEN = (
    "unproven: not shown to be wrong, but not proven. Read the reason; the finding's own hints have the change in words. "
    "Test it yourself before you use it."
)


def fix(options: argparse.Namespace) -> int:
    """Tries the fixes of a script, prints them, and applies them if that is asked for."""
    spec = RunSpec(options.script, tuple(options.args), python=options.python, cwd=options.cwd)
    worker = Worker(options.python)
    try:
        worker.wait_until_ready(90)
        with Prover(spec, worker) as prover:
            original = prover.begin()
            if original.outcome.kind is OutcomeKind.ENVIRONMENT_ERROR:
                print(f"irscope fix: {printable(original.outcome.message)}", file=sys.stderr)
                return 3
            findings = sorted(original.findings, key=lambda f: (f.file, f.range))
            chosen = [f for f in findings if not options.only or f.code in options.only or f.kind in options.only]
            say = _say if sys.stderr.isatty() else lambda what: None
            trying = Trying(prover, options.seconds, say, patches=True)
            tried = [trying.finding(finding) for finding in chosen]
            together = combined(trying, tried)
            before = {path: prover.text_of(path) for path in together.texts}
            static = _static(prover, spec, options.script) if options.measure else None
        gain = measure(spec, together.texts) if options.measure and together.texts else None
    finally:
        worker.stop()
    patch_files: dict[str, str] = {}
    try:
        if options.patches:
            patch_files = _write_patches(options.patches, tried)
    finally:  # what took minutes is printed also where the patches cannot be written
        if options.json:
            data = {**_data(tried, together, before), "measured": _measured(gain), "static": _static_data(static)}
            print(json.dumps(data, indent=1))
        else:
            lines = _lines(tried, together, before, patch_files)
            to_stdout([*lines, *_measured_lines(gain), *_static_lines(static)])
    if options.apply:
        write({path: (before[path], text) for path, text in together.texts.items()})
    if not options.json and (options.apply or options.patches is not None):
        to_stdout([*_written(list(together.texts) if options.apply else [], list(patch_files.values()))])
    return 0


def _written(files: Sequence[str], patches: Sequence[str]) -> Iterator[str]:
    """Which files were written."""
    names = [*map(os.path.relpath, files), *patches]
    yield printable(f"Written: {', '.join(names)}.") if names else "Nothing was written: there is no verified change."


def _write_patches(folder: str, tried: list[Tried]) -> dict[str, str]:
    """Writes the verified patches into a folder, and returns the path of each by its diff.

    Raises OSError, of which a WriteError says what is there now.
    """
    patches = [(diff, os.path.join(folder, name), text) for diff, name, text in _patch_files(tried)]
    if patches:
        os.makedirs(folder, exist_ok=True)
    write_files({path: text.encode("utf-8", "backslashreplace") for _, path, text in patches})
    return {diff: path for diff, path, _ in patches}


def _patch_files(tried: list[Tried]) -> Iterator[tuple[str, str, str]]:
    """Diffs, names and texts of the patches that are verified; of two for one change the first."""
    known: set[str] = set()
    for one in tried:
        for patch in one.patches:
            if patch.proof.status is Status.VERIFIED and patch.diff not in known:
                known.add(patch.diff)
                name = f"{len(known):04}-{patch.name.rpartition('/')[2].removesuffix('.py')}.patch"
                yield patch.diff, name, _patch_text(one, patch)


def _static(prover: Prover, spec: RunSpec, script: str) -> StaticSizes | None:
    """What comes of static sizes, in the file of the script alone."""
    return measured_static_sizes(prover, spec, os.path.abspath(os.path.join(spec.cwd or "", script)))


def _say(what: str) -> None:
    print(f"trying {printable(what)}", file=sys.stderr)


def _place(finding: Finding) -> dict[str, Any]:
    return {"kind": finding.kind, "code": finding.code, "file": finding.file, "range": to_json(finding.range),
            "message": finding.message}  # fmt: skip


def _candidate(one: Candidate) -> dict[str, Any]:
    proof = one.proof
    gain = proof.gain
    return {
        "title": one.fix.title, "caveat": one.fix.caveat, "status": proof.status.value, "reason": proof.reason,
        "repairs": one.fix.repairs, "file": one.file, "edits": to_json(one.fix.edits),
        "removes": [_place(f) for f in proof.removes], "adds": [_place(f) for f in proof.adds],
        "checks": list(proof.checks), "not_held_back": to_json(proof.not_held_back),
        "gain": None if gain is None else {
            "graphs": list(gain.graphs), "compile_seconds": [round(s, 3) for s in gain.seconds],
        },
    }  # fmt: skip


def _patch(one: Patch) -> dict[str, Any]:
    return {
        "title": one.fix.title, "caveat": one.fix.caveat, "status": one.proof.status.value, "reason": one.proof.reason,
        "file": one.file, "diff": one.diff, "checks": list(one.proof.checks),
    }  # fmt: skip


def _data(tried: list[Tried], together: Together, before: dict[str, str]) -> dict[str, Any]:
    return {
        "schema": 1,
        "findings": [
            {
                **_place(t.finding),
                "hints": to_json(tried_hints(t.finding, t)),
                "candidates": [_candidate(c) for c in t.candidates],
                "left_out": together.why_left_out(t.finding),
                "patches": [_patch(p) for p in t.patches],
            }
            for t in tried
        ],
        "fixed": len(together.fixed),
        "diff": "\n".join(_diff(together, before)),
    }


def _measured(gain: MeasuredGain | None) -> dict[str, Any] | None:
    if gain is None:
        return None
    sides = (gain.before, gain.after)
    return {
        "graphs": [side.graphs for side in sides], "kernels": [side.kernels for side in sides],
        "compile_seconds": [round(side.compile_seconds, 3) for side in sides],
        "call_seconds": [None if side.call is None else [side.call.median, side.call.low, side.call.high] for side in sides],
        "rounds": ROUNDS, "significant": gain.is_significant, "why": next((side.why for side in sides if side.why), ""),
    }  # fmt: skip


def _measured_lines(gain: MeasuredGain | None) -> Iterator[str]:
    if gain is None:
        return
    old, new = gain.before, gain.after
    yield (
        f"Through the whole pipeline: {units.count(new.graphs, 'graph')} (was {old.graphs}), "
        f"{units.count(new.operations, 'operation')} (was {old.operations}), "
        f"{units.count(new.kernels, 'kernel')} (was {old.kernels}), compiled in {units.duration(new.compile_seconds)} "
        f"(was {units.duration(old.compile_seconds)})."
    )
    if old.call is None or new.call is None:
        yield printable(f"Calls were not timed: {old.why or new.why}")
        return
    sides = [
        f"{units.duration(one.median)} ({units.duration(one.low)} to {units.duration(one.high)})"
        for one in (new.call, old.call)
    ]
    word = "" if gain.is_significant else " The two overlap: no difference is shown."
    word = " It is slower with the change." if gain.is_slower else word
    yield f"A call takes {sides[0]}; it was {sides[1]}. Median, least and most of {ROUNDS} rounds in turns.{word}"


def _static_data(static: StaticSizes | None) -> dict[str, Any] | None:
    if static is None:
        return None
    fix, proof = static.fix, static.proof
    return {
        "title": fix.title, "caveat": fix.caveat, "status": proof.status.value, "checks": list(proof.checks),
        "file": static.file, "edits": to_json(fix.edits), "is_faster": not static.why_not, "why_not": static.why_not,
        "measured": _measured(static.gain),
    }  # fmt: skip


def _static_lines(static: StaticSizes | None) -> Iterator[str]:
    """A change that costs compile time is told, and never applied: how many sizes will come only the user knows."""
    if static is None:
        return
    yield ""
    if static.gain is None or static.why_not:
        yield printable(f"Static sizes are not worth it: {static.why_not}")
        if static.gain is not None:
            yield from _measured_lines(static.gain)
        return
    yield printable(f"Static sizes are faster here: {static.fix.title}. {static.fix.caveat} It is not applied.")
    yield from _measured_lines(static.gain)
    text = decode_source(read_bounded(static.file))
    yield from (
        printable(line) for line in diff_of(text, applied(text, static.fix.edits), os.path.relpath(static.file))
    )


def _diff(together: Together, before: dict[str, str]) -> Iterator[str]:
    for path, text in together.texts.items():
        yield from diff_of(before[path], text, os.path.relpath(path))


def _lines(
    tried: list[Tried], together: Together, before: dict[str, str], patch_files: Mapping[str, str]
) -> Iterator[str]:
    if not tried:
        yield "No findings."
    for one in tried:
        finding = one.finding
        yield f"{printable(os.path.relpath(finding.file))}:{finding.range.start.line}: {finding.code} {printable(finding.message)}"
        if not one.candidates and not one.patches:
            yield "  no fix is known that can be applied"
        for hint in tried_hints(finding, one):
            yield printable(f"  hint: {' '.join(hint.text.split())}")
            yield printable(f"    {hint.said}")
        for patch in one.patches:
            yield from _words(patch, f"{patch.fix.title} ({patch.name})", " in the library")
            if patch.diff in patch_files:
                yield printable(f"    patch: {patch_files[patch.diff]}")
        for candidate in one.candidates:
            left_to_python = "" if candidate.fix.repairs else ", but it repairs nothing and is not applied"
            yield from _words(candidate, candidate.fix.title, left_to_python)
            if candidate is one.verified and (why := together.why_left_out(finding)):
                yield printable(f"    not in the diff: {why}")
    if together.texts:
        yield ""
        yield from (printable(line) for line in _diff(together, before))
    yield from _summary(sum(one.verified is not None for one in tried), len(tried), len(together.fixed))
    proofs = [one.proof for each in tried for one in each.candidates] + [
        one.proof for each in tried for one in each.patches
    ]
    if any(proof.status is Status.UNPROVEN for proof in proofs):
        yield _UNPROVEN


def _summary(verified: int, findings: int, together: int) -> Iterator[str]:
    """How many have a verified fix, and how many of those fixes are applied."""
    yield f"{verified} of {findings} findings have a verified fix."
    if together < verified:
        yield f'The diff has {units.count(together, "fix", "fixes")} of {verified}: see "not in the diff" above.'


def _words(one: Candidate | Patch, title: str, which: str) -> Iterator[str]:
    """What a fix costs, what it changes and what was compared; or why it is not verified.

    Args:
        which: What is said of a verified one.
    """
    proof = one.proof
    if proof.status is not Status.VERIFIED:
        where = which if isinstance(one, Patch) else ""
        yield printable(f"  {proof.status.value}{where}: {title}. {proof.reason}")
        return
    yield printable(f"  verified{which}: {title}.")
    if one.fix.caveat:
        yield printable(f"    note: {one.fix.caveat}")
    yield f"    gain: {gains_of(one)}"
    yield printable(f"    same results as without compile: {'; '.join(proof.checks)}")


def _patch_text(tried: Tried, patch: Patch) -> str:
    """The text of a patch file: a subject and a text for the pull request, what to do until then, and the diff."""
    line = min((edit.range.start.line for edit in patch.fix.edits), default=1)
    checks = "".join(f"- {check}\n" for check in patch.proof.checks)
    hints = tried.finding.hints or ("Call it outside of the compiled code.",)
    if tried.verified is not None:
        hints = (f"{tried.verified.fix.title} (`irscope fix` applies it in your file).",)
    workaround = "\n".join(f"- {hint}" for hint in hints)
    return (
        f"Subject: [PATCH] {patch.fix.title}: no graph break in {os.path.basename(patch.name)}\n\n"
        f"`torch.compile` breaks the graph at line {line} of `{patch.name}`:\n{tried.finding.message}\n\n"
        f"With this change the graph is not broken there, and the results are the same.\n{patch.fix.caveat}\n\n"
        f"Compared with the original without compile:\n{checks}\n"
        f"Until a release has it:\n{workaround}\n---\n{patch.diff}"
    )
