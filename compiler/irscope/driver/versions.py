"""Compares what one script gets in two environments, and confirms what causes the differences by trying it.

A cause is *confirmed* where the newer environment with the older value, or with the older code of a function, no longer
has the difference, or where both environments without a decomposition or pass no longer differ in it.  Everything else is named, and not confirmed.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from irscope.comparing.versions.differences import Difference, differences, graph_texts
from irscope.comparing.versions.environments import (
    DECOMPOSITION,
    PASS,
    SETTING,
    EnvironmentChange,
    Facts,
    environment_changes,
    old_settings,
)
from irscope.comparing.versions.kernel_code import changed_words, code_differences, code_pairs
from irscope.driver.debuggers import without_debugger
from irscope.driver.driver import RunSpec, execute
from irscope.driver.search import Cause, Flip, Search
from irscope.driver.version_candidates import Functions, read_refusals
from irscope.findings.kinds import cache_miss
from irscope.protocol import FoundEvidence, Outcome, OutcomeKind, from_json
from irscope.runner.evidence import ANSWER, REFERENCE
from irscope.store.store import Store
from irscope.system.commands import run_bounded
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.units import count
from irscope.worker.client import Worker, wait_for

_BOOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "boot.py")
_FACTS_SECONDS = 600.0
_WORKER_SECONDS = 300.0
_DISABLED = "torch._inductor.config.disabled_passes"
_MOST_ANSWER = 1 << 20
_OF_EARLIER_RUNS = (cache_miss.KIND.id,)
"""Kinds of findings that depend on what was run before."""
_WITH_OLDER_CODE = "the newer environment was run with the older code of it"
_FIRST = "first-"
"""Begins the name of the results of the older environment as it is."""


class VersionError(Exception):
    """The environments cannot be compared; the message says why."""


@dataclass(frozen=True)
class VersionSide:
    """The script in one environment.

    Args:
        run: Its run in the store.
        compile_seconds, seconds: Seconds of all its compiles, and of the run.
    """

    python: str
    torch: str
    run: str
    outcome: Outcome
    compiles: int
    kernels: int
    compile_seconds: float
    seconds: float


@dataclass(frozen=True)
class VersionDiff:
    """What differs between two environments, and why.

    Args:
        changes: What is different in the environments, whether or not this script uses it.
        causes: The causes, with what each explains.  One that is not confirmed has evidence: where a break was raised.
        unexplained: Differences without a confirmed cause.
        unstable: Differences that a second run of the newer environment did not have, or in which it differs from the
            first run.
        numbers: How many tensors were compared, or why none.
        trials: How many more runs were made to find causes.
        is_over: Whether the time for the search was over before its end.
    """

    script: str
    before: VersionSide
    after: VersionSide
    differences: tuple[Difference, ...]
    causes: tuple[Cause, ...]
    unexplained: tuple[Difference, ...]
    unstable: tuple[Difference, ...]
    changes: tuple[EnvironmentChange, ...]
    numbers: str
    trials: int
    is_over: bool

    @property
    def same(self) -> bool:
        """Whether nothing differs but times."""
        return not self.differences


@dataclass(frozen=True)
class Plan:
    """What is compared, and what is known in advance.

    Args:
        before, after: The same script in both environments.
        seconds: After which no other run is begun to find a cause; 0: no cause is looked for.
        facts: Facts of both environments; None: they are asked.
        workers: Fork servers of both; None: fresh processes, and a fork server of the newer one for the search.
    """

    before: RunSpec
    after: RunSpec
    seconds: float = 600.0
    facts: tuple[Facts, Facts] | None = None
    workers: tuple[Worker | None, Worker | None] = field(default=(None, None))


def facts_of(python: str, env: Mapping[str, str] | None = None) -> Facts:
    """What an environment has.  Raises VersionError if its interpreter cannot import torch."""
    environment = {**without_debugger(os.environ), **(env or {})}
    path = shutil.which(python)
    if path is None:
        raise VersionError(f"No Python interpreter at {python}.")
    try:
        done = run_bounded([path, _BOOT, "facts"], _FACTS_SECONDS, env=environment)
        found = json.loads(done.stdout)
    except subprocess.TimeoutExpired as error:
        raise VersionError(f"{python} did not import torch in {_FACTS_SECONDS:.0f} s.") from error
    except (OSError, ValueError) as error:
        last = done.stderr.strip().splitlines()[-1:] if isinstance(error, ValueError) else [str(error)]
        raise VersionError(f"{python} cannot be compared: {''.join(last) or 'it printed no facts'}.") from error
    try:
        return from_json(Facts, {**found, "passes": found["pass"]})
    except (KeyError, TypeError, ValueError) as error:
        raise VersionError(f"{python} gave facts that cannot be read: {error}.") from error


def compared_versions(
    plan: Plan,
    store: Store,
    *,
    on_step: Callable[[str], None] = lambda text: None,
    on_bytes: Callable[[str, bytes], None] = lambda stream, data: None,
) -> VersionDiff:
    """Runs the script in both environments, compares, and looks for the causes.

    Args:
        store: Where the two runs are kept.  Those of the search are not.
        on_step, on_bytes: Called with what is done next, and with what the script prints.

    Raises VersionError if one of the environments cannot be asked.
    """
    until = time.monotonic() + plan.seconds
    with tempfile.TemporaryDirectory(prefix="irscope-versions-") as folder:
        return _Comparing(plan, store, folder, on_step, on_bytes).result(until)


class _Comparing:
    def __init__(
        self,
        plan: Plan,
        store: Store,
        folder: str,
        on_step: Callable[[str], None],
        on_bytes: Callable[[str, bytes], None],
    ) -> None:
        self._plan, self._store, self._folder = plan, store, folder
        self._on_step, self._on_bytes = on_step, on_bytes
        self._workers = list(plan.workers)
        self._own: list[Worker] = []
        self._number, self._newer = 0, ""
        self._varying: list[Difference] = []  # between two runs of the newer environment

    def result(self, until: float) -> VersionDiff:
        plan = self._plan
        self._on_step("asking both environments what they have")
        old_facts, new_facts = plan.facts or (
            facts_of(plan.before.python, plan.before.env),
            facts_of(plan.after.python, plan.after.env),
        )
        changes = environment_changes(old_facts, new_facts)
        self._on_step(f"running the script with torch {old_facts.torch}")
        before, _ = self._run(plan.before, plan.workers[0], _FIRST, True, self._on_bytes)
        self._on_step(f"running the script with torch {new_facts.torch}")
        after, evidence = self._run(plan.after, plan.workers[1], _FIRST, False)
        found = self._differences(before, after, evidence)
        self._newer = after
        search = Search(found, lambda flip: self._tried(before, flip), until, self._on_step, lambda: self._varying)
        if found and plan.seconds > 0:
            try:
                self._look_for_causes(search, changes, (old_facts, new_facts), before, after)
            finally:
                for worker in self._own:
                    worker.stop()
        return VersionDiff(
            script=plan.after.stored_script,
            before=self._side(before, old_facts.torch, plan.before.python),
            after=self._side(after, new_facts.torch, plan.after.python),
            differences=tuple(found),
            causes=tuple(search.causes),
            unexplained=tuple(search.left),
            unstable=tuple(search.unstable),
            changes=tuple(changes),
            numbers=_told(evidence),
            trials=self._number - 2,
            is_over=search.is_over,
        )

    def _differences(self, before: str, after: str, evidence: FoundEvidence | None) -> list[Difference]:
        store = self._store
        code = code_differences(code_pairs(store, store.report(before), store.report(after)))
        return differences(store, before, after, _numbers(evidence), _OF_EARLIER_RUNS, code)

    def _look_for_causes(
        self, search: Search, changes: Sequence[EnvironmentChange], facts: tuple[Facts, Facts], before: str, after: str
    ) -> None:
        by_name = {one.name: one for one in changes if one.kind == SETTING}
        search.control()
        settings = old_settings(changes)
        search.candidates(
            [(by_name[name], Flip(settings={name: value})) for name, value in settings.items()],
            "the newer environment was run with the older value",
        )
        functions = self._functions(facts)
        search.candidates(functions.of_breaks(search.left), _WITH_OLDER_CODE)
        search.candidates(functions.gained(search.left), "the newer environment was run without it")
        search.candidates(functions.about(search.left), _WITH_OLDER_CODE)
        search.candidates(
            [(one, Flip(without=(one.name,), in_both=True)) for one in changes
             if one.kind == DECOMPOSITION and search.left and self._uses(one.name, before, after)],
            "both environments were run without it",
        )  # fmt: skip
        search.candidates(
            [(EnvironmentChange(PASS, name, *states), Flip(passes=(name,), in_both=True))
             for name, states in self._other_passes(before, after).items()],
            "both environments were run without it",
        )  # fmt: skip
        if search.left:
            used = functions.of_lowerings(changes, lambda name: self._uses(name, before, after))
            search.candidates(used, _WITH_OLDER_CODE)
        if any(one.kind == "code" for one in search.left):
            words = changed_words(code_pairs(self._store, self._store.report(before), self._store.report(after)))
            search.candidates(functions.that_write(words), _WITH_OLDER_CODE)
        search.causes += functions.told(search.left)

    def _functions(self, facts: tuple[Facts, Facts]) -> Functions:
        """The first two runs are the script in both environments as they are."""
        refusals = [read_refusals(os.path.join(self._folder, number)) for number in ("1", "2")]
        return Functions(*facts, (refusals[0], refusals[1]))

    def _uses(self, operation: str, *runs: str) -> bool:
        """Whether a graph of one of the runs may have had an operation: its name is in a text."""
        name = operation.rpartition(".")[2].strip("_").removeprefix("native_")
        name = name.removesuffix("_backward").removesuffix("_forward")  # no graph may have these by name
        word = re.compile(rf"(?<![a-z]){re.escape(name)}(?![a-z])")
        return any(word.search(text) for run in runs for text in graph_texts(self._store, run))

    def _other_passes(self, before: str, after: str) -> dict[str, tuple[str, str]]:
        """Passes that changed graphs in one of the runs only, with the state before and after."""
        was, now = (
            {stage.passed for compile in self._store.report(run).compiles for stage in compile.stages if stage.passed}
            for run in (before, after)
        )
        changed = "changed a graph"
        return {name: (changed if name in was else "", changed if name in now else "") for name in sorted(was ^ now)}

    def _tried(self, before: str, flip: Flip) -> list[Difference] | None:
        """The differences with a flip; None if the script no longer ends as before."""
        older, reference, made = before, _FIRST, []
        try:
            if flip.in_both:
                reference = f"{self._number}-"
                older, _ = self._run(_flipped(self._plan.before, flip), self._worker(0), reference, True)
                made.append(older)
            newer, evidence = self._run(_flipped(self._plan.after, flip), self._worker(1), reference, False)
            made.append(newer)
            kinds = [self._store.report(run).outcome.kind for run in (before, older, newer)]
            if len(set(kinds)) > 1 and kinds[2] is not OutcomeKind.COMPLETED:
                return None
            if flip == Flip():
                self._varying = self._differences(self._newer, newer, None)
            return self._differences(older, newer, evidence)
        finally:
            for run in made:
                self._store.delete(run)

    def _worker(self, side: int) -> Worker | None:
        """A fork server of an environment, started when a run of the search first needs it."""
        worker = self._workers[side]
        if worker is None:
            spec = (self._plan.before, self._plan.after)[side]
            worker = self._workers[side] = Worker(spec.python, spec.env, spec.cwd)
            self._own.append(worker)
        wait_for(worker, _WORKER_SECONDS)  # where it is not ready, `execute` starts a fresh process
        return worker

    def _run(
        self,
        spec: RunSpec,
        worker: Worker | None,
        reference: str,
        writes: bool,
        on_bytes: Callable[[str, bytes], None] = lambda stream, data: None,
    ) -> tuple[str, FoundEvidence | None]:
        """One run.  The first with a name of a reference leaves its results there, others are compared with them."""
        self._number += 1
        folder = os.path.join(self._folder, str(self._number))
        os.mkdir(folder)
        known = os.path.join(self._folder, f"{reference}{REFERENCE}")
        own = os.path.join(folder, REFERENCE)
        if not writes and os.path.exists(known):
            os.symlink(known, own)
        run, _ = execute(dataclasses.replace(spec, evidence=folder), self._store, on_bytes=on_bytes, worker=worker)
        if writes and os.path.exists(own):
            os.replace(own, known)
        return run, _answer(os.path.join(folder, ANSWER))

    def _side(self, run: str, torch: str, python: str) -> VersionSide:
        report = self._store.report(run)
        return VersionSide(
            python, torch, run, report.outcome, len(report.compiles),
            sum(kernel.is_generated for kernel in report.kernels),
            sum(compile.seconds for compile in report.compiles), report.outcome.seconds,
        )  # fmt: skip


def _flipped(spec: RunSpec, flip: Flip) -> RunSpec:
    settings = {**spec.settings, **flip.settings}
    if flip.passes:
        settings[_DISABLED] = repr(",".join(flip.passes))
    code = {**spec.code, **flip.code}
    return dataclasses.replace(spec, settings=settings, without=(*spec.without, *flip.without), code=code)


def _answer(path: str) -> FoundEvidence | None:
    try:
        with open(path, encoding="utf-8") as file:
            return from_json(FoundEvidence, json.loads(file.read(_MOST_ANSWER)))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _numbers(evidence: FoundEvidence | None) -> tuple[str, ...]:
    return (*evidence.differences, *evidence.types) if evidence is not None else ()


def _told(evidence: FoundEvidence | None) -> str:
    """What was compared of the numbers, in words."""
    if evidence is None:
        return "no numbers were compared: the run left none"
    if evidence.problem:
        return f"no numbers were compared: {evidence.problem}"
    return f"{count(evidence.tensors, 'tensor')} of {count(evidence.programs, 'compiled program')} compared"
