"""A stored run as a debugger walks through it: its compiles, and the stages of each in the order of the pipeline.

The first stage of every compile is the user's own code.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from irscope.pipelines.registry import role_of, stage_kind
from irscope.protocol import Compile, Finding, Report, StageRef
from irscope.provenance import Provenance, chain
from irscope.store.store import Store
from irscope.symbolic.trace import Walk
from irscope.usercode.reading import read_bounded
from irscope.usercode.source import decode_source, parse_text, qualified_name_in
from irscope.vocabulary.function_names import function_title, plain_name
from irscope.vocabulary.stages import Role

from irscope_server.dap.base.sections import Section, SourceSection, Spot, real
from irscope_server.dap.trace.traces import FOUND_IN_TRACES, TraceSection


@dataclass(frozen=True, order=True)
class PlaceInRun:
    """Where a thread is in a run.  Places sort as the pipeline goes: by compile, stage and spot."""

    compile: int
    section: int
    spot: int


class Track:
    """One compile: its stages on the way from source to machine code, the forward's before the backward's.

    What only describes a compile (timings, the memory plan) is `aside`: documents to read, not to walk through.
    """

    def __init__(
        self, store: Store, report: Report, provenance: Provenance, compile: Compile, order: list[StageRef]
    ) -> None:
        self.compile = compile
        findings = [finding for finding in report.findings if compile.id in finding.compiles]
        attempts = [stage.id for stage in order if role_of(stage.name) is Role.TRACE]

        def section(stage: StageRef) -> Section:
            if role_of(stage.name) is not Role.TRACE:
                return Section(store, report, provenance, compile, stage)
            attempt = (attempts.index(stage.id) + 1, len(attempts))
            return TraceSection(store, report, provenance, compile, stage, attempt, findings)

        own = [section(stage) for stage in order if not is_aside(stage)]
        graph = next((section for section in own if stage_kind(section.stage.name).is_captured), None)
        self.source = SourceSection(store, report, provenance, compile, graph, findings)
        self.sections: tuple[Section, ...] = (self.source, *own)
        self.source.called_from = compile.callers
        if (first := next((section for section in own if chain.is_backward(section.stage)), None)) is not None:
            first.called_from = compile.backward_callers
        self.aside = tuple(Section(store, report, provenance, compile, stage) for stage in order if is_aside(stage))
        self._entered: list[Section] = []
        self._numbers = {each.stage.id: number for number, each in enumerate(self.sections)}
        self._traces = [(number, each) for number, each in enumerate(self.sections) if isinstance(each, TraceSection)]

    @property
    def name(self) -> str:
        """The name of the thread: compile id, function, file and line."""
        compile, spot = self.compile, self.source.first_spot()
        place = f" ({spot.file.rpartition('/')[2]}:{spot.line})" if spot.file else ""
        return f"{compile.id} {spot.name}{place}"

    def traces(self) -> list[tuple[int, TraceSection, Walk]]:
        """The attempts of Dynamo's that can be walked through, with the numbers of their sections."""
        return [(number, each, each.walk) for number, each in self._traces if each.walk is not None]

    @cached_property
    def stops_at(self) -> Mapping[int, Mapping[int, tuple[Finding, ...]]]:
        """Where findings are: section → spot → findings.

        One that an instruction of a symbolic trace brought about is there, in the first attempt that came to it; the
        others are at their line of the user's code.
        """
        found: dict[int, dict[int, tuple[Finding, ...]]] = {0: {}}
        placed: set[int] = set()
        if any(finding.kind in FOUND_IN_TRACES for finding in self.source.findings):
            for number, section, _ in self.traces():
                for step, finding in section.findings_at.items():
                    if id(finding) not in placed:
                        placed.add(id(finding))
                        found.setdefault(number, {})[step] = (finding,)
        for spot, each in enumerate(self.source.spots):
            if left := tuple(finding for finding in each.findings if id(finding) not in placed):
                found[0][spot] = left
        return found

    def section(self, number: int) -> Section:
        """A section by its number; those that were entered come after the others, and no step leads on to them."""
        known = len(self.sections)
        return self.sections[number] if number < known else self._entered[number - known]

    def enter(self, section: Section) -> int:
        """Adds a section that was made when a thread entered it.  Returns its number."""
        self._entered.append(section)
        return len(self.sections) + len(self._entered) - 1

    def number_of(self, stage: str) -> int | None:
        """Where a stage is in `sections`; None if it does not belong to them."""
        return self._numbers.get(stage)


class Recording:
    """A run of a store.  Raises LookupError for an unknown run."""

    def __init__(self, store: Store, run: str) -> None:
        self.store = store
        self.report = store.report(run).whole
        self.provenance = Provenance(store, self.report)
        in_order = Provenance(store, self.report, versions=True)
        self.tracks = tuple(
            Track(store, self.report, self.provenance, each, _ordered(each, in_order.pipeline(each.id)))
            for each in self.report.compiles
        )

    def section(self, place: PlaceInRun) -> Section:
        """The stage that a place is in."""
        return self.tracks[place.compile].section(place.section)

    def spot(self, place: PlaceInRun) -> Spot:
        """The spot of a place; the first spot of a stage is found without reading the others."""
        section = self.section(place)
        return section.first_spot() if place.spot == 0 else section.spots[place.spot]

    def sections(self) -> Iterator[tuple[int, int, Section]]:
        """Every stage that is walked through, with the numbers of its compile and of itself."""
        for compile, track in enumerate(self.tracks):
            for number, section in enumerate(track.sections):
                yield compile, number, section

    def documents(self) -> Iterator[Section]:
        """Every stage that has a text."""
        for track in self.tracks:
            yield from track.sections[1:]
            yield from track.aside

    @cached_property
    def folder(self) -> str:
        """The folder that the script ran in, if that holds the script, else the script's own; empty for a root."""
        script = self.report.script
        ran_in = str(self.store.how_run(self.report.run)[0].get("cwd") or "")
        inside = ran_in and script.startswith(os.path.join(ran_in, ""))
        folder = ran_in if inside else os.path.dirname(script)
        return folder if folder != os.path.dirname(folder) else ""

    @cached_property
    def sources(self) -> Mapping[str, str]:
        """The user's files as they were in the run, by path."""
        return self.store.sources(self.report.run)

    def text_of(self, path: str) -> str:
        """A file's text, as it was in the run where the run kept it; empty if it cannot be read."""
        then = next((text for file, text in self.sources.items() if real(file) == real(path)), None)
        return then if then is not None else _read(path) or ""

    def text_as_it_is(self, path: str) -> str | None:
        """A file's text as it is now; None if it cannot be read."""
        return _read(path)

    def text_as_run(self, path: str) -> str | None:
        """A file's text as it was in the run, if it has changed since; None if the file can be shown."""
        then = next((text for file, text in self.sources.items() if real(file) == real(path)), None)
        now = _read(path)
        if now is None:
            return then
        return then if then is not None and _lines(then) != _lines(now) else None


class FunctionNames:
    """The names of functions in frames, with their classes: ``Block.forward, after line 94``.

    A trace has the names of code objects alone; the texts of the files have the rest.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._trees: dict[str, ast.Module | None] = {}

    def title(self, file: str, function: str, line: int) -> str:
        """The name to show for a function, by a line of it; without classes if its file cannot be read."""
        name = plain_name(function)
        if file not in self._trees:
            text = self._recording.text_of(file)
            self._trees[file] = parse_text(text) if len(text) <= _LONGEST_TEXT else None
        return function_title(function, qualified_name_in(self._trees[file], name, line))


_LONGEST_TEXT = 1 << 20
"""Characters of a file that is parsed for the names of functions."""


def is_aside(stage: StageRef) -> bool:
    """Whether stepping passes a stage by, since it is not on the way from source to machine code."""
    return not stage_kind(stage.name).is_stepped


def _ordered(compile: Compile, pipeline: tuple[StageRef, ...]) -> list[StageRef]:
    """All stages of a compile: those of the pipeline in its order, each other one after the last before it."""
    ranks = {stage.id: rank for rank, stage in enumerate(pipeline)}
    keys: dict[str, tuple[int, int]] = {}
    last = -1
    for number, stage in enumerate(compile.stages):
        if stage.id in ranks:
            keys[stage.id] = (ranks[stage.id], 0)
            last = ranks[stage.id]
        else:
            keys[stage.id] = (last, number + 1)
    return sorted(compile.stages, key=lambda stage: keys[stage.id])


def _read(path: str) -> str | None:
    """A file of the user's, if it can be read; its name may come from a store from elsewhere."""
    try:
        return decode_source(read_bounded(path))
    except (OSError, ValueError):
        return None


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").split("\n")
