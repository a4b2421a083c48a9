"""The pages of docs/findings: their examples give the finding, their remedies do not, and what they quote was printed.

Each page has a script fenced as ``python example`` and one fenced as ``python remedy``; words after that are variables
(``NAME=VALUE``).  Comments of the example say on which lines the finding is: ``# ← GB0170``, several codes by commas.
The ``text`` after each script is what `irscope run` prints (`irscope diverge` for a divergence), with ``…`` for what is
left out.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from irscope.cli import values
from irscope.cli.report import report_lines
from irscope.cli.text import Paint
from irscope.cli.watching import report_of_watch
from irscope.findings.control import controlled
from irscope.findings.kinds.outcomes import SCRIPT_ERROR
from irscope.findings.registry import all_kinds
from irscope.pipelines.registry import pipelines
from irscope.protocol import DEFAULT_PIPELINE, Finding, Lane, Report, ValuesRequest
from irscope.store.store import Store
from irscope.values.run.reading import divergences
from irscope.vocabulary.findings import VALUE_RUNS_ONLY
from irscope.worker.client import Worker
from irscope_server.running.outcomes import findings_of
from support import Ran, run_captured, write

PAGES = Path(__file__).parents[3] / "docs" / "findings"
ELSEWHERE = {
    "cudagraph-skip": "needs a GPU; tests/plain/test_device_findings.py makes it from what PyTorch printed on one",
    "fake-value": "needs --fake; tests/worker/stages/test_fake_runs.py",
    "memory-at-peak": "needs a profile; tests/worker/process/test_step_memory.py makes one",
    "slow-line": "needs a GPU's measured time; tests/plain/test_slow_lines.py makes it from recordings of one",
    "kernel-check": "needs triton; tests/worker/values/test_kernel_programs.py",
    "environment-error": "is about an interpreter and not about a script; tests/worker/process/test_bad_input.py",
    "unsupported-operator": "needs ONNX Runtime; tests/pipelines/test_onnx.py",
    "rank-divergence": "needs a run of several ranks; tests/worker/ranks/test_fake_group.py",
    "static-size": "needs JAX; tests/pipelines/test_openxla.py",
    "not-quantized": "needs torchao; tests/pipelines/test_torchao.py",
}
"""Pages whose scripts are not run here, with the reason."""
RUN_HERE = sorted(set(all_kinds()) - set(ELSEWHERE))
NAME = "example.py"
NO_COLOURS = Paint(io.StringIO())
_FENCE = re.compile(r"^```(?P<words>[^\n]*)\n(?P<text>.*?)\n```$", re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"# ← (?P<codes>[\w-]+(?:, [\w-]+)*)$")


@dataclass(frozen=True)
class Script:
    """A script of a page, its variables, and the lines that the page quotes after it."""

    source: str
    env: Mapping[str, str]
    quoted: tuple[str, ...]

    def marks(self) -> set[tuple[int, str]]:
        lines = enumerate(self.source.split("\n"), 1)
        return {(at, code) for at, line in lines if (m := _MARK.search(line)) for code in m["codes"].split(", ")}


def fences(kind: str) -> list[tuple[str, str]]:
    """The words after each fence of a page, and what is fenced."""
    return [(m["words"], m["text"]) for m in _FENCE.finditer((PAGES / f"{kind}.md").read_text("utf-8"))]


def scripts(kind: str, role: str) -> Iterator[Script]:
    found = fences(kind)
    for at, (words, text) in enumerate(found):
        if words.split()[:2] == ["python", role]:
            assert found[at + 1][0] == "text", f"what irscope says comes after the {role}"
            env = dict(word.split("=", 1) for word in words.split()[2:])
            yield Script(text, env, tuple(found[at + 1][1].split("\n")))


def test_each_page_has_scripts_that_are_run_or_is_listed() -> None:
    with_scripts = {kind for kind in all_kinds() if any(scripts(kind, "example"))}
    assert with_scripts == {kind for kind in all_kinds() if any(scripts(kind, "remedy"))}
    assert set(RUN_HERE) == with_scripts - set(ELSEWHERE)


@pytest.mark.parametrize("kind", RUN_HERE)
def test_the_example_has_the_finding_and_the_remedy_has_not(
    kind: str, tmp_path: Path, shared_worker: Worker | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    [example], [remedy] = scripts(kind, "example"), scripts(kind, "remedy")
    before = run(kind, example, tmp_path / "before", shared_worker)
    shown = found_in(kind, before)
    assert {(f.range.start.line, f.code) for f in shown if f.kind == kind} == example.marks() != set()
    check_quoted(kind, example, before, monkeypatch)
    after = run(kind, remedy, tmp_path / "after", shared_worker)
    assert {f.kind for f in found_in(kind, after)} <= {f.kind for f in shown} - {kind, SCRIPT_ERROR.id}
    assert after.report.compiles, "the remedy still compiles"
    check_quoted(kind, remedy, after, monkeypatch)


def lane_of(kind: str) -> Lane:
    return Lane.FAST if Lane.FAST in all_kinds()[kind].lanes else Lane.DEEP


def pipeline_of(kind: str) -> str:
    """The pipeline that declares the kind, if several do that which needs the least, with the fewest stages; the usual
    one, if all have it."""
    own = [one for one in pipelines().values() if any(found.id == kind for found in one.findings)]
    return min(own, key=lambda one: (len(one.needs), len(one.stages))).name if own else DEFAULT_PIPELINE


def run(kind: str, script: Script, folder: Path, worker: Worker | None) -> Ran:
    compares = all_kinds()[kind].lanes == VALUE_RUNS_ONLY
    ran = run_captured(
        write(folder, script.source + "\n", NAME),
        folder / "runs.db",
        lane_of(kind).value,
        cwd=str(folder),
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **script.env},
        worker=worker,
        pipeline=pipeline_of(kind),
        values=ValuesRequest(statistics=False, divergence=True, watch=kind == "non-finite") if compares else None,
    )
    assert ran.report.capture_gaps == ()
    return ran


def found_in(kind: str, ran: Ran) -> tuple[Finding, ...]:
    """What is found as the editor shows it: with how the run ended."""
    report = controlled(ran.report, lane_of(kind))
    ending = findings_of(report.outcome, report.script, Path(report.script).read_text("utf-8").split("\n"))
    return (*report.findings, *ending)


def check_quoted(kind: str, script: Script, ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    """The quoted lines were printed, in this order, by the quoted command."""
    monkeypatch.chdir(Path(ran.report.script).parent)  # paths are printed relative to it
    monkeypatch.setenv("COLUMNS", "100")
    printed = iter(printed_by(kind, ran))
    command, *lines = script.quoted
    assert command == command_of(kind, script)
    for quoted in lines:
        if quoted.strip() != "…":
            assert any(is_quoted(quoted, line) for line in printed), f"not printed: {quoted}"


def command_of(kind: str, script: Script) -> str:
    variables = "".join(f"{name}={value} " for name, value in script.env.items())
    if kind in ("divergence", "non-finite"):
        return f"$ {variables}irscope {'watch' if kind == 'non-finite' else 'diverge'} {NAME}"
    lane = " --lane fast" if lane_of(kind) is Lane.FAST else ""
    pipeline = pipeline_of(kind)
    return f"$ {variables}irscope run {NAME}{lane}{'' if pipeline == DEFAULT_PIPELINE else f' --pipeline {pipeline}'}"


def printed_of(report: Report, lane: Lane) -> list[str]:
    return "\n".join(report_lines(controlled(report, lane), NO_COLOURS)).split("\n")


def printed_by(kind: str, ran: Ran) -> list[str]:
    if kind == "non-finite":
        return report_of_watch(ran.report, NO_COLOURS)
    return printed_of_values(ran) if kind == "divergence" else printed_of(ran.report, lane_of(kind))


def printed_of_values(ran: Ran) -> list[str]:
    with Store(ran.store) as store:
        compared = [data for _, data in divergences(store, ran.report)]
    return [line for data in compared for line in values._comparison_lines(data, NO_COLOURS, False)]


def is_quoted(quoted: str, line: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, quoted.split("…"))), line) is not None
