"""What the runs of this session found, in memory: the one source of diagnostics, lenses and hovers.

A script has its newest run, its newest deep run and perhaps a run that goes on.  Each remembers the texts it ran
with, so that what it found can be placed in the text as it is now.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from irscope.findings.registry import all_kinds
from irscope.profiling.profile import MeasuredKernel, Profile
from irscope.protocol import DEFAULT_PIPELINE, Compile, Finding, Kernel, Lane, Outcome, OutcomeKind, Report
from irscope.provenance.kernels import kernels_by_line

from irscope_server.base.texts import FileKey, by_file, file_key

AnyKernel = TypeVar("AnyKernel", Kernel, MeasuredKernel)

_SEEN_BY_FAST = frozenset(id for id, kind in all_kinds().items() if kind.in_compile and Lane.FAST in kind.lanes)
"""Kinds of findings of which a fast run tells all: a newer fast run takes the place of an older deep one's."""


class _OfEntry:
    """A run, which began with an entry."""

    script: str
    entry: str

    @property
    def script_key(self) -> FileKey:
        """The key of the script's file."""
        return file_key(self.script)

    @property
    def key(self) -> str:
        """What the results are kept by: the entry, else the key of the script's file."""
        return self.entry or self.script_key


@dataclass(frozen=True)
class Ended(_OfEntry):
    """A run that ended."""

    script: str
    lane: Lane
    source: str
    """Digest of the script's text as it ran."""
    report: Report
    texts: Mapping[FileKey, Sequence[str]]
    """Lines of the files that it names, as they were when it ran."""

    full: Report | None = None
    """The report with everything that was found, where `report` is what the user wants to see of it."""
    entry: str = ""
    """Key of the entry that it began with; empty: that of the script."""
    profile: Profile | None = None
    """Measured time, if it was profiled."""
    why_not_measured: str = ""

    @property
    def run(self) -> str:
        """The id of the run; empty if it is not in the store."""
        return self.report.run

    @functools.cached_property
    def compiles(self) -> Mapping[FileKey, Sequence[Compile]]:
        """The compiles of each file, in the order of the report."""
        return by_file(self.report.compiles)

    @functools.cached_property
    def callers(self) -> frozenset[FileKey]:
        """The files with lines that call compiled code."""
        compiles = self.report.compiles
        return frozenset(file_key(line.file) for one in compiles for line in (*one.callers, *one.backward_callers))

    @functools.cached_property
    def kernels(self) -> Mapping[FileKey, Mapping[int, Sequence[Kernel]]]:
        """The kernels of each line (1-based) of each file, a user's or a library's, in the order of the report."""
        files: dict[FileKey, dict[int, list[Kernel]]] = {}
        for origin, kernels in kernels_by_line(self.report).items():
            files.setdefault(file_key(origin.file), {})[origin.line] = kernels
        return files


@dataclass
class Live(_OfEntry):
    """A run that goes on, with what it has found so far."""

    script: str
    lane: Lane
    source: str
    texts: Mapping[FileKey, Sequence[str]]
    run: str = ""
    findings: dict[tuple[object, ...], Finding] = field(default_factory=dict)
    shown: tuple[Finding, ...] | None = None
    """What the user wants to see of them, once it was asked for."""
    entry: str = ""
    """Key of the entry that it began with; empty: that of the script."""

    def add(self, finding: Finding) -> None:
        """Keep a finding; it replaces an earlier one of the same cause."""
        self.shown = None
        self.findings[finding.cause] = finding


@dataclass(frozen=True)
class Found:
    """A finding with the run and the text that it comes from."""

    finding: Finding
    key: FileKey
    """The key of its file."""
    run: str
    texts: Mapping[FileKey, Sequence[str]]
    """Lines of all files that the run names."""
    outcome: Outcome | None = None
    """How the run ended; None during the run."""
    may_differ: tuple[str, ...] = ()
    """Why a full run may find other things; see `Report.may_differ`."""


Control = Callable[[Report, Lane, Mapping[FileKey, Sequence[str]]], Report]
"""Gives a report as the user wants to see it, with the texts that it is about."""


class _Script:
    """What is known about a script; ``newest`` and ``deep`` are as the user wants to see them."""

    def __init__(self) -> None:
        self.newest: Ended | None = None
        self.deep: Ended | None = None
        self.previous: Ended | None = None
        """The newest run of other texts than those of ``newest``, where the two can be compared: before the last edit."""
        self.live: Live | None = None
        self.cut: tuple[Found, ...] = ()
        """What runs found that were cancelled since ``newest``: it stays until a run has told all."""


class Results:
    """Everything known, by script (more exactly: by the key of the entry).  ``revision`` grows with each change.

    Args:
        control: What hides findings and changes their severity; it is applied once per run, and again by
            `control_again`.
    """

    def __init__(self, control: Control = lambda report, lane, texts: report) -> None:
        self.revision = 0
        self._scripts: dict[str, _Script] = {}
        self._control = control

    def control_again(self) -> None:
        """What the user wants to see has changed."""
        for script in self._scripts.values():
            newest, deep = script.newest, script.deep
            script.newest = self._shown(newest)
            script.deep = script.newest if deep is newest else self._shown(deep)
            script.cut = ()
            if script.live:
                script.live.shown = None
        self.revision += 1

    def _shown(self, ended: Ended | None) -> Ended | None:
        if ended is None:
            return None
        full = ended.full or ended.report
        return dataclasses.replace(ended, report=self._control(full, ended.lane, ended.texts), full=full)

    def _shown_live(self, live: Live) -> tuple[Finding, ...]:
        """What a run has found so far.  Whether a comment is of no use cannot be said before the end."""
        if live.shown is None:
            unended = Outcome(OutcomeKind.CANCELLED, None, "", 0.0)
            report = Report(1, live.run, live.script, None, unended, (), tuple(live.findings.values()), (), ())
            live.shown = self._control(report, live.lane, live.texts).findings
        return live.shown

    def begin(self, live: Live) -> None:
        """A run began; what the ones before found stays until this one ends."""
        script = self._of(live.key)
        self._keep_cut(script)
        script.live = live
        self.revision += 1

    def add_finding(self, live: Live, finding: Finding) -> None:
        """Keep a finding of a run that goes on."""
        live.add(finding)
        self.revision += 1

    def end(self, live: Live | None, ended: Ended | None) -> None:
        """A run ended; what it found takes the place of what was known.

        A cancelled run is incomplete: it replaces earlier results only if there are none.
        """
        cancelled = ended is not None and ended.report.outcome.kind is OutcomeKind.CANCELLED
        if live is not None and (script := self._of(live.key)).live is live:
            if cancelled:
                self._keep_cut(script)
            script.live = None
        if ended is not None:
            script = self._of(ended.key)
            if not cancelled or script.newest is None:
                script.cut = ()
                if script.newest is not None and not _of_same_texts(script.newest, ended):
                    script.previous = script.newest if _comparable(script.newest, ended) else None
                ended = self._shown(ended)
                if not _only_adds(script.newest, ended):
                    script.newest = ended
                if ended is not None and ended.lane is Lane.DEEP:
                    script.deep = ended
        self.revision += 1

    def _keep_cut(self, script: _Script) -> None:
        """Keeps what a run has found that will not tell all, before what older ones of that kind did."""
        if script.live and (shown := self._shown_live(script.live)):
            mine = tuple(_found(script.live, shown))
            causes = {found.finding.cause for found in mine}
            script.cut = (*mine, *(found for found in script.cut if found.finding.cause not in causes))

    def remember_deep(self, ended: Ended) -> None:
        """A deep run from the store, of the text as it is now: it brings kernels, and without a newest run also findings."""
        script = self._of(ended.key)
        script.deep = self._shown(ended)
        script.newest = script.newest or script.deep
        self.revision += 1

    def forget(self, key: str) -> None:
        """Drops what an entry's runs found."""
        if self._scripts.pop(key, None):
            self.revision += 1

    def newest(self, key: str) -> Ended | None:
        """The newest run of an entry."""
        script = self._scripts.get(key)
        return script.newest if script else None

    def previous(self, key: str) -> Ended | None:
        """An entry's last run before the last edit, of this session and where it ended in the same way."""
        script = self._scripts.get(key)
        return script.previous if script else None

    def deep(self, key: str) -> Ended | None:
        """The newest deep run of an entry."""
        script = self._scripts.get(key)
        return script.deep if script else None

    def judged(self, key: str) -> Ended | None:
        """The run of an entry that says most of its text as the newest one ran it: a deep one, if there is one of it."""
        newest, deep = self.newest(key), self.deep(key)
        if newest is None or deep is None or not newest.report.outcome.is_whole:
            return newest
        return deep if _of_same_texts(newest, deep) else newest

    def newest_of_all(self) -> list[Ended]:
        """The newest run of each entry, newest first."""
        newest = [script.newest for script in self._scripts.values() if script.newest]
        return sorted(newest, key=lambda ended: ended.run, reverse=True)

    def runs_touching(self, key: FileKey) -> list[Ended]:
        """The newest runs that compiled something in a file: the file's own first, then other scripts', newest first."""
        own = self._scripts.get(key)
        others = [s.newest for name, s in self._scripts.items() if name != key and s.newest]
        others.sort(key=lambda ended: ended.run, reverse=True)
        mine = [own.newest] if own and own.newest else []
        return mine + [ended for ended in others if key in ended.compiles]

    def deep_runs_touching(self, key: FileKey) -> list[Ended]:
        """The newest deep runs that may have results for a file's kernels: the file's own first."""
        own = self._scripts.get(key)
        others = [s.deep for name, s in self._scripts.items() if name != key and s.deep]
        others.sort(key=lambda ended: ended.run, reverse=True)
        return ([own.deep] if own and own.deep else []) + [e for e in others if key in e.texts]

    def files(self) -> set[FileKey]:
        """The files in which something was found."""
        return {found.key for found in self._all()}

    def findings_in(self, key: FileKey) -> list[Found]:
        """What the runs of all entries found in a file; what a run found a moment ago before what an older one did."""
        return [found for found in self._all() if found.key == key]

    def _all(self) -> Iterator[Found]:
        for script in self._scripts.values():
            if script.live:
                yield from _found(script.live, self._shown_live(script.live))
            yield from script.cut
            newest, deep = script.newest, script.deep
            if newest and newest.report.may_differ and deep and _of_same_texts(newest, deep):
                newest = deep  # what the full run has found is true already
            if newest:
                yield from _found(newest, newest.report.findings, newest.report)
            if newest and deep and deep is not newest and deep.source == newest.source:
                seen = (finding for finding in deep.report.findings if finding.kind not in _SEEN_BY_FAST)
                yield from _found(deep, seen, deep.report)

    def _of(self, key: str) -> _Script:
        return self._scripts.setdefault(key, _Script())


def _of_same_texts(before: Ended, now: Ended) -> bool:
    """Whether two runs had the same script, and the same text of each file that both name."""
    both = before.texts.keys() & now.texts.keys()
    return before.source == now.source and all(list(before.texts[key]) == list(now.texts[key]) for key in both)


def _only_adds(before: Ended | None, now: Ended | None) -> bool:
    """Whether a run leaves what an older one of the same texts found: only the usual pipeline reports graph breaks."""
    if before is None or now is None or now.report.pipeline == DEFAULT_PIPELINE:
        return False
    return before.report.pipeline == DEFAULT_PIPELINE and _of_same_texts(before, now)


def _comparable(before: Ended | None, now: Ended) -> bool:
    return before is not None and before.report.outcome.kind is now.report.outcome.kind


def _found(run: Ended | Live, findings: Iterable[Finding], report: Report | None = None) -> Iterator[Found]:
    outcome, may_differ = (report.outcome, report.may_differ) if report else (None, ())
    for finding in findings:
        yield Found(finding, file_key(finding.file), run.run, run.texts, outcome, may_differ)


def by_origin(kernels: Iterable[AnyKernel]) -> dict[FileKey, dict[int, list[AnyKernel]]]:
    """Kernels by the files and the lines (1-based) that they came from, in their order."""
    files: dict[FileKey, dict[int, list[AnyKernel]]] = {}
    for kernel in kernels:
        for key, line in dict.fromkeys((file_key(origin.file), origin.line) for origin in kernel.origins):
            files.setdefault(key, {}).setdefault(line, []).append(kernel)
    return files


def touches(report: Report, key: FileKey) -> bool:
    """Whether a run compiled or found something in a file."""
    return key in by_file(report.compiles) or key in by_file(report.findings)


def files_of(report: Report) -> dict[FileKey, str]:
    """Paths of the files that a report names."""
    files = {
        report.script,
        *(finding.file for finding in report.findings),
        *(fix.file for finding in report.findings for fix in finding.fixes if fix.file),
        *(compile.file for compile in report.compiles),
        *(origin.file for kernel in report.kernels for origin in kernel.origins),
        *(part.file for kernel in report.kernels for part in kernel.lines),
        *(line.file for compile in report.compiles for line in (*compile.callers, *compile.backward_callers)),
    }
    return {file_key(file): file for file in files}


def with_findings(report: Report, extra: Sequence[Finding]) -> Report:
    """The report with more findings, those about how the run ended."""
    return dataclasses.replace(report, findings=(*report.findings, *extra)) if extra else report


def empty_report(script: str, outcome: Outcome) -> Report:
    """The report of a run that never came to be in the store."""
    return Report(1, "", script, None, outcome, (), (), (), ())


def is_recompile(compile: Compile) -> bool:
    """``0/1`` is a recompilation of frame 0, ``0/0`` is its first compile."""
    last = compile.id.rsplit("/", 1)[-1].strip("[]")
    return last.isdigit() and int(last) > 0


def frame_of(compile: Compile) -> str:
    """The part of a compile's id that its recompilations share."""
    return compile.id.rsplit("/", 1)[0]
