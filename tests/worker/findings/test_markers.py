"""Scripts that say themselves what is to be found in them, in markers below the lines concerned.

A marker is a comment line with carets under the range, the kind, the code and, where it is more than one, the count::

    if x.sum() > 0:
    #  ^^^^^^^^^^^ graph-break GB0170 ×3

Where a range begins too far left for that, the ``#`` is its first column (``#^^^^``).  A range that ends on a later
line says where: ``to +2:9`` is column 9 two lines below, marker lines not counted.  A range of several findings has a
marker line for each.  The first comments of a script may set its ``lane``, an ``env`` variable and the ``outcome``.

The markers are all there is: a finding without a marker fails the test as a marker without a finding does.
`npm test` runs those that set nothing one after the other in one run, and a few in a run of their own, as all are at
night: there, the first script of each kind in a fresh process, as on the command line, the others in forks, as in the
editor.

``UPDATE_EXPECT=1`` writes the markers anew; read the difference before you keep it.
"""

from __future__ import annotations

import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest
from irscope.findings.control import controlled
from irscope.protocol import Finding, Lane, Report
from irscope.worker.client import Worker
from script_runs import run_all
from support import run_captured
from versions import OWN, torch_version

MARKERS = Path(__file__).parents[2] / "markers"
SCRIPTS = sorted(MARKERS.glob("*/*.py"))
FRESH = [
    next(iter(sorted((MARKERS / kind).glob("*.py"))))
    for kind in ("deep", "graph_break", "recompilation", "compile_error")
]
"""These run in a fresh process, as on the command line, the others in forks, as in the editor."""
EACH_TIME = {"graph_break/below_library"}
"""A fresh process for one is enough for `npm test`."""
NO_LINES = "reasons of recompilations name no line of the user's, so they are at the parameter or the variable"
OTHER_IDS = "PyTorch has other ids for some of these breaks, or breaks elsewhere"
SINCE = {
    "compile_error/fake_tensor": ("2.11", "errors of operations on fake tensors have no id in PyTorch's registry"),
    "compile_error/fullgraph": (
        "2.11",
        "a mask as an index is a graph break and no UserError, and fullgraph captures no scalars",
    ),
    "compile_error/generator": ("2.11", "PyTorch reports no break inside a generator"),
    "compile_error/unsupported_op": (
        "2.11",
        "errors of operations on fake tensors have no id, and generators end as another error",
    ),
    "control/ignored": ("2.11", NO_LINES),
    "deep/lowering": ("2.11", "an error in a lowering does not tell the line of its node"),
    "graph_break/below_library": ("2.13", OTHER_IDS),
    "graph_break/comprehensions": ("2.11", "a break inside a comprehension is not one of the comprehension as well"),
    "graph_break/decorated": ("2.11", NO_LINES),
    "graph_break/fstrings_and_walrus": ("2.13", OTHER_IDS),
    "graph_break/generator_functions": ("2.11", "PyTorch reports no break inside a generator"),
    "graph_break/ids_autograd": ("2.13", OTHER_IDS),
    "graph_break/ids_calls": ("2.13", OTHER_IDS),
    "graph_break/ids_values": ("2.11", OTHER_IDS),
    "graph_break/inlined_helpers": ("2.13", NO_LINES),
    "graph_break/with_blocks": ("2.11", "a break inside a context manager of the user's gives up the whole function"),
    "recompilation/modules": ("2.13", NO_LINES),
    "recompilation/self_and_globals": ("2.11", NO_LINES),
}
"""Scripts whose markers hold from a version of torch on, with what the ones before do (2.9 and 2.11 were looked at)."""
PYTHON_311 = {"graph_break/fstrings_and_walrus", "graph_break/ids_values", "graph_break/multiline"}
"""Scripts with instructions to which a newer Python gives a smaller place: a jump that of its condition alone."""
UNTIL = {
    "export_error/by_the_script": "AOTInductor of PyTorch 2.15 compiles the program",
    "graph_break/ids_autograd": "an LSTM breaks once, by another id (GB0148)",
    "graph_break/ids_calls": "a function of C breaks by another id (GB9193), and sys.getsizeof is traced",
    "graph_break/raised": "the user's exception is made while tracing; the break is where it is raised (GB0088)",
    "skipped_frame/module_compile": "PyTorch 2.14 compiles the modules",
    "specialization/dynamic": "str() of a symbolic size breaks by another id (GB6053)",
}
"""Scripts whose markers hold up to torch 2.13 (looked at on 2.15), with what 2.15 does."""
_MARKER = re.compile(r"^\s*# *\^+(?: to \+\d+:\d+)? [a-z-]+ \S+(?: ×\d+)?$")
_HEADER = re.compile(r"^# (lane|env|outcome): (.+)$", re.MULTILINE)


def name_of(script: Path) -> str:
    return f"{script.parent.name}/{script.stem}"


def is_among_others(script: Path) -> bool:
    """Whether it can run before and after others: it sets nothing, and does not end by an error."""
    return not _HEADER.search(script.read_text(encoding="utf-8"))


def marks_of(script: Path) -> list[pytest.MarkDecorator]:
    since, until = SINCE.get(name_of(script)), UNTIL.get(name_of(script))
    marks = [pytest.mark.since_torch(*since)] if since else []
    if is_among_others(script) and name_of(script) not in EACH_TIME:
        marks.append(pytest.mark.nightly)  # what is found is looked at in test_scripts_in_one_run, too
    if name_of(script) in PYTHON_311:
        marks.append(
            pytest.mark.skipif(sys.version_info >= (3, 12), reason="after Python 3.11: smaller places of jumps")
        )
    return [*marks, pytest.mark.until_torch("2.13", until)] if until else marks


@pytest.mark.parametrize("script", [pytest.param(each, marks=marks_of(each), id=name_of(each)) for each in SCRIPTS])
def test_script(script: Path, tmp_path: Path, shared_worker: Worker | None) -> None:
    check_findings(script, tmp_path, None if script in FRESH else shared_worker)


@pytest.mark.skipif(torch_version() != OWN, reason="other versions of torch find other things in some of them")
def test_scripts_in_one_run(tmp_path: Path) -> None:
    """What is found in a script does not depend on what ran before it, with Dynamo reset in between."""
    newer_python = sys.version_info >= (3, 12)
    scripts = [each for each in SCRIPTS if is_among_others(each) and not (newer_python and name_of(each) in PYTHON_311)]
    assert len(scripts) > 50
    compare(scripts, controlled(run_all(tmp_path, "driver", scripts).report, Lane.FAST))


def test_the_tables_name_scripts() -> None:
    assert {*EACH_TIME, *SINCE, *UNTIL, *PYTHON_311} <= {name_of(script) for script in SCRIPTS}


def check_findings(script: Path, folder: Path, worker: Worker | None) -> None:
    """Runs a script and compares its findings, in all of its files, with the markers.

    Args:
        folder: Where the run may write.
        worker: Nothing: the run is a fresh process.
    """
    headers = _HEADER.findall(script.read_text(encoding="utf-8"))
    setting = dict(headers)
    env = dict(text.split("=", 1) for key, text in headers if key == "env")
    lane = Lane(setting.get("lane", "fast"))
    ran = run_captured(
        script,
        folder / "runs.db",
        lane.value,
        cwd=str(folder),
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **env},
        worker=worker,
    )
    assert ran.report.outcome.kind.value == setting.get("outcome", "completed"), ran.stderr[-3000:]
    assert ran.report.capture_gaps == ()
    compare([script], controlled(ran.report, lane))


def compare(scripts: Iterable[Path], report: Report) -> None:
    """Compares all findings of a run with the markers of its scripts."""
    by_file: dict[Path, list[Finding]] = defaultdict(list)
    for finding in report.findings:
        by_file[Path(finding.file)].append(finding)
    own = [file for script in scripts for file in (script, *script.with_name(f"{script.stem}_lib").glob("**/*.py"))]
    problems = [finding for file in by_file.keys() - set(own) for finding in by_file[file]]
    assert problems == [], "findings in files that are not the script's"
    for file in own:
        text = file.read_text(encoding="utf-8")
        found = marked(text, by_file[file])
        if os.environ.get("UPDATE_EXPECT"):
            file.write_text(found, encoding="utf-8")
        else:
            assert found == text, f"{file.name}: what is found (+) is not what is marked (-)"


def marked(text: str, findings: Iterable[Finding]) -> str:
    """The text with a marker for each finding and without those that it had; the findings' lines are the text's."""
    kept: list[str] = []
    new_line = {}
    for number, line in enumerate(text.split("\n"), 1):
        new_line[number] = len(kept) + (0 if _MARKER.match(line) else 1)
        if not _MARKER.match(line):
            kept.append(line)
    below = defaultdict(list)
    for finding in sorted(findings, key=lambda f: (f.range, f.kind, f.code)):
        start, end = new_line[finding.range.start.line], new_line[finding.range.end.line]
        below[start].append(_marker(kept[start - 1], finding, end - start))
    return "\n".join(out for number, line in enumerate(kept, 1) for out in (line, *below[number]))


def _marker(line: str, finding: Finding, lines_more: int) -> str:
    start, end = finding.range.start.column, finding.range.end.column
    width = (len(line) if lines_more else end) - start
    hash_at = min(len(line) - len(line.lstrip()), start)
    if start == hash_at + 1:
        hash_at = start
    lead = "".join(char if char == "\t" else " " for char in line[:hash_at])
    carets = f"#{'^' * max(width - 1, 1)}" if start == hash_at else f"#{' ' * (start - hash_at - 1)}{'^' * width}"
    to = f" to +{lines_more}:{end}" if lines_more or (start == hash_at and width < 2) else ""
    count = f" ×{finding.count}" if finding.count != 1 else ""
    return f"{lead}{carets}{to} {finding.kind} {finding.code}{count}"
