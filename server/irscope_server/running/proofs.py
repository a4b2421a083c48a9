"""Fixes that are tried in the background after a run, so that the editor offers those first that are verified."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from irscope.protocol import Edit, Finding, OutcomeKind
from irscope.usercode.source import digest_of
from irscope.vocabulary.records import dataclass

from irscope_server.base.texts import FileKey, file_key
from irscope_server.running.results import Ended
from irscope_server.running.runs import Run
from irscope_server.running.workers import Workers

if TYPE_CHECKING:
    from irscope.driver.fixing.candidates import Tried

log = logging.getLogger(__name__)

_MOST_KEPT = 64
"""Contents whose trials are kept."""

Cause = tuple[str, str, str, str, object]
Stamp = tuple[int, int]


@dataclass(frozen=True)
class Combined:
    """Verified fixes that were proven as a whole: the edits by file, of the texts that the run had."""

    edits: Mapping[str, tuple[Edit, ...]]
    fixed: tuple[Finding, ...]
    texts: Mapping[str, Sequence[str]]
    """Lines of the files that are edited, as they were."""


@dataclass(frozen=True)
class Proven:
    """What trials have shown of one content of a script and its files.

    Args:
        tried: By cause of the finding.
        combined: By code of the findings; empty: all together.
        files: The files that the script imported, and the first file of each package, with what `_stamp` said of them.
        is_whole: Whether nothing is left to try.  Trials stop when the next run begins.
    """

    tried: Mapping[Cause, Tried] = dataclasses.field(default_factory=dict)
    combined: Mapping[str, Combined] = dataclasses.field(default_factory=dict)
    files: Mapping[str, Stamp] = dataclasses.field(default_factory=dict)
    is_whole: bool = False

    @property
    def is_current(self) -> bool:
        """Whether no file that was imported has changed since, as by an upgrade of torch."""
        return all(_stamp(file) == stamp for file, stamp in self.files.items())


class Proofs:
    """Tries fixes, one script at a time per entry.  Everything but the trials belongs to the event loop.

    Args:
        workers: Where trials find a process with torch.
        enabled: Whether runs are real; tests play them.
        changed: Called when more is known.
    """

    def __init__(self, workers: Workers, enabled: bool, changed: Callable[[], None] = lambda: None) -> None:
        self._workers, self._enabled, self._changed = workers, enabled, changed
        self._known: dict[str, Proven] = {}
        self._contents: dict[str, str] = {}
        self._newest: dict[str, str] = {}
        """By entry what its newest run had; the newest last."""
        self._going: dict[str, threading.Event] = {}
        self._trying: set[str] = set()
        """The contents that trials go on for."""
        self._looked_at: tuple[FileKey, int] = (FileKey(""), 0)

    def of_run(self, run: str) -> Proven:
        """What is known about the content that a run had; empty before the first trial has ended."""
        return self._known.get(self._contents.get(run, ""), Proven())

    def of_finding(self, run: str, finding: Finding) -> Tried | None:
        """What was tried for a finding of a run; None if nothing was yet."""
        return self.of_run(run).tried.get(finding.cause)

    def is_trying(self, run: str) -> bool:
        """Whether trials go on for the content that a run had."""
        return self._contents.get(run) in self._trying

    def looks_at(self, file: FileKey, line: int) -> None:
        """The user is at a line (1-based) of a file: what was found nearest to it is tried next."""
        self._looked_at = (file, line)

    def newest(self) -> list[Proven]:
        """What is known about the newest run of each entry; what an older one had is not proven for its text any more."""
        return [self._known[content] for content in self._newest.values() if content in self._known]

    def began(self, run: Run) -> None:
        """A run began: trials of the same entry stop, so that they do not slow it down."""
        self.cancel(run.key)

    def ended(self, run: Run, ended: Ended) -> None:
        """A run ended that no other took the place of: its fixes are tried, unless they are known."""
        self._newest.pop(run.key, None)
        seconds = run.plan.settings.fixes_seconds
        wanted = self._enabled and seconds > 0 and ended.run and not run.spec.cells
        if not wanted or ended.report.outcome.kind is not OutcomeKind.COMPLETED or not ended.report.findings:
            return
        content = _content(run, ended.texts)
        self._contents.pop(ended.run, None)
        self._contents[ended.run] = self._newest[run.key] = content
        known = self._known.get(content)
        if known is not None and not known.is_current:
            del self._known[content]
        elif known is not None and known.is_whole:
            return
        stop = self._going[run.key] = threading.Event()
        loop = asyncio.get_running_loop()

        def in_loop(call: Callable[..., None], *args: object) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the server is on its way out
                loop.call_soon_threadsafe(call, *args)

        def tell(proven: Proven) -> None:
            in_loop(self._keep, content, proven)

        def over() -> None:
            self._trying.discard(content)
            self._changed()

        def work() -> None:
            try:
                self._work(run, seconds, stop, tell, frozenset(ended.texts), ended.report.findings)
            finally:
                in_loop(over)

        self._trying.add(content)
        threading.Thread(target=work, name="irscope-fixes", daemon=True).start()

    def cancel(self, key: str) -> None:
        """Stops the trials of an entry."""
        if (stop := self._going.pop(key, None)) is not None:
            stop.set()

    def close(self) -> None:
        """Stops all trials."""
        for key in list(self._going):
            self.cancel(key)

    def _keep(self, content: str, proven: Proven) -> None:
        before = self._known.pop(content, None)
        if before is not None and not proven.is_whole:  # it was stopped, and goes over the same findings again
            proven = dataclasses.replace(proven, tried={**before.tried, **proven.tried}, combined=before.combined)
        self._known[content] = proven
        while len(self._known) > _MOST_KEPT:
            self._known.pop(next(iter(self._known)))
        while len(self._contents) > 4 * _MOST_KEPT:
            self._contents.pop(next(iter(self._contents)))
        while len(self._newest) > 4 * _MOST_KEPT:
            self._newest.pop(next(iter(self._newest)))
        self._changed()

    # --- in a thread --------------------------------------------------------------------------------------------------

    def _work(
        self,
        run: Run,
        seconds: float,
        stop: threading.Event,
        tell: Callable[[Proven], None],
        own: frozenset[FileKey],
        findings: Sequence[Finding],
    ) -> None:
        try:
            with self._workers.for_run(run.plan.python, run.plan.env or None, stop, cwd=run.plan.cwd) as worker:
                if worker is not None and not stop.is_set():
                    _try(run, seconds, stop, tell, own, findings, worker, self._distance)
        except Exception:
            log.exception("The fixes of %s could not be tried", run.name)

    def _distance(self, finding: Finding) -> tuple[object, ...]:
        """How far a finding is from where the user is now: in that file by lines, else in another one."""
        file, line = self._looked_at
        at = finding.range.start.line
        is_here = file_key(finding.file) == file
        return not is_here, abs(at - line) if is_here else 0, finding.file, finding.range


def _try(
    run: Run,
    seconds: float,
    stop: threading.Event,
    tell: Callable[[Proven], None],
    own: frozenset[FileKey],
    findings: Sequence[Finding],
    worker: object,
    distance: Callable[[Finding], tuple[object, ...]],
) -> None:
    """Tells what each trial shows, the nearest finding first; ``own`` are the files whose texts are a part of the content,
    ``findings`` the run's."""
    from irscope.driver.fixing.combining import combined as combine
    from irscope.driver.fixing.trying import Trying
    from irscope.driver.trials.proving import Prover, not_run
    from irscope.fixing.texts import edits_between
    from irscope.worker.client import Worker

    assert isinstance(worker, Worker)
    with Prover(run.spec, worker, stop, has_run=True) as prover:
        original = prover.begin()
        found_files = prover.eager.evidence.files if prover.eager and prover.eager.evidence else ()
        files = {file: _stamp(file) for file in found_files if file_key(file) not in own}
        trying = Trying(prover, seconds)
        tried: dict[Cause, Tried] = {}
        if not not_run(original):
            findings = original.findings
        left = list(findings)
        while left and not trying.is_over:
            left.remove(finding := min(left, key=distance))  # the user may have gone to another place
            if stop.is_set():
                return
            one = trying.finding(finding)
            if stop.is_set():
                return
            tried[finding.cause] = one
            tell(Proven(dict(tried), files=files))
        combined: dict[str, Combined] = {}
        found = [one for one in tried.values() if one.verified is not None]
        codes = [one.finding.code for one in found]
        for code in ("", *(code for code in dict.fromkeys(codes) if 1 < codes.count(code) < len(found))):
            if not found or stop.is_set() or trying.has_ended:
                break
            together = combine(trying, [one for one in found if code in ("", one.finding.code)])
            before = {path: prover.text_of(path) for path in together.texts}
            edits = {path: edits_between(before[path], text) for path, text in together.texts.items()}
            lines = {path: text.split("\n") for path, text in before.items()}
            combined[code] = Combined(edits, together.fixed, lines)
        if not stop.is_set():
            tell(Proven(dict(tried), combined, files, is_whole=True))


def _stamp(file: str) -> Stamp:
    """When a file was changed, in nanoseconds, and its size in bytes; zeros if it is not there."""
    try:
        found = os.stat(file)
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


def _content(run: Run, texts: Mapping[FileKey, Sequence[str]]) -> str:
    """What the trials depend on: the files' texts, how the script is run and for how long."""
    spec = run.spec
    files = sorted((key, digest_of("\n".join(lines))) for key, lines in texts.items())
    return digest_of(
        repr(
            (
                files,
                spec.script,
                spec.args,
                spec.python,
                spec.cwd,
                sorted((spec.env or {}).items()),
                run.torch,
                run.plan.settings.fixes_seconds,
            )
        )
    )
