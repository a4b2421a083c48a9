"""One script in two environments: equal ones have no difference, and seeded changes are confirmed as causes."""

from __future__ import annotations

import dataclasses
import json
import sys
import venv
from pathlib import Path

import pytest
from irscope.cli.versioning import markdown
from irscope.comparing.versions.environments import Facts
from irscope.driver.driver import RunSpec
from irscope.driver.versions import Plan, VersionDiff, compared_versions
from irscope.store.store import Store
from support import run_cli, shared_worker, write

pytestmark = pytest.mark.worker

SCALED = """\
import torch


@torch.compile
def scaled(x):
    factor = x.sum().item()
    return x * factor


scaled(torch.ones(4))
"""
SMOOTH = """

@torch.compile
def smooth(x):
    return torch.nn.functional.gelu(x) + 1


smooth(torch.ones(4))
"""
SCALARS = "torch._dynamo.config.capture_scalar_outputs"
OTHER = "torch._inductor.config.max_fusion_size"


def compared(folder: Path, source: str, after: dict[str, object], facts: tuple[Facts, Facts]) -> VersionDiff:
    script = str(write(folder, source))
    before = RunSpec(script=script, symbolic_trace=False)
    plan = Plan(before, dataclasses.replace(before, **after), 600, facts, (shared_worker(), shared_worker()))  # type: ignore[arg-type]
    with Store(str(folder / "runs.db")) as store:
        found = compared_versions(plan, store)
        assert {one.run for one in store.runs()} == {found.before.run, found.after.run}, "trials are not kept"
    return found


ALIKE = sorted((Path(__file__).parents[3] / "benchmarks" / "version_set").glob("same_*.py"))


@pytest.mark.nightly
@pytest.mark.parametrize("script", ALIKE, ids=lambda path: path.stem)
def test_alike_environments_differ_only_in_what_changes_from_run_to_run(tmp_path: Path, script: Path) -> None:
    found = compared(tmp_path, script.read_text(encoding="utf-8"), {}, (Facts(torch="a"), Facts(torch="a")))
    assert set(found.differences) <= set(found.unstable), found.differences
    assert not found.causes and not found.unexplained
    assert found.same or "time.time()" in script.read_text(encoding="utf-8"), found.differences


def test_alike_environments_do_not_differ(tmp_path: Path) -> None:
    found = compared(tmp_path, SCALED, {}, (Facts(torch="a"), Facts(torch="a")))
    assert found.same and not found.causes and not found.unexplained and found.trials == 0
    assert found.numbers == "1 tensor of 1 compiled program compared"
    assert "None but times." in markdown(found)


def test_a_changed_default_is_confirmed_by_the_older_value(tmp_path: Path) -> None:
    facts = Facts(torch="a", settings={SCALARS: "False"}), Facts(torch="b", settings={SCALARS: "True"})
    found = compared(tmp_path, SCALED, {"settings": {SCALARS: "True"}}, facts)
    (cause,) = found.causes
    assert [change.words for change in cause.changes] == [f"{SCALARS} was False, now True"] and cause.confirmed
    assert ("finding", 6) in {(one.kind, one.line) for one in cause.explains}, "the break at .item() is gone"
    assert not found.unexplained and found.trials == 2
    text = markdown(found)
    assert f"**confirmed** `{SCALARS} was False, now True`" in text and str(tmp_path) not in text


@pytest.mark.nightly
def test_two_causes_among_other_changes(tmp_path: Path) -> None:
    old = Facts(torch="a", settings={SCALARS: "False", OTHER: "64"}, decomposition={"aten.gelu": "x"})
    new = Facts(torch="b", settings={SCALARS: "True", OTHER: "65"})
    found = compared(tmp_path, SCALED + SMOOTH, {"settings": {SCALARS: "True"}, "without": ("aten.gelu",)}, (old, new))
    first, second = found.causes
    assert [change.words for change in first.changes] == [f"{SCALARS} was False, now True"]
    assert [change.words for change in second.changes] == ["the decomposition aten.gelu is gone"]
    assert {one.line for one in second.explains if one.kind == "graph"} == {15}
    assert first.confirmed and second.confirmed and not found.unexplained


@pytest.mark.nightly
def test_the_command_compares_interpreters(tmp_path: Path) -> None:
    """The second environment has the same packages, and a variable that changes a default."""
    venv.create(tmp_path / "new", with_pip=False)
    python = tmp_path / "new" / "bin" / "python"
    packages = next((tmp_path / "new" / "lib").glob("python*")) / "site-packages"
    paths = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "same.pth").write_text("\n".join(paths) + "\n", encoding="utf-8")
    (packages / "sitecustomize.py").write_text(
        "import os\nos.environ['TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS'] = '1'\n", encoding="utf-8"
    )
    script, report = write(tmp_path, SCALED), tmp_path / "report.md"
    done = run_cli(
        "diff", "--python", sys.executable, "--python", python, script, "--json", "-o", report,
        "--store", tmp_path / "runs.db",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert not found["same"] and not found["unexplained"]
    assert [[one["name"] for one in cause["changes"]] for cause in found["causes"]] == [[SCALARS]]
    assert "**confirmed**" in report.read_text(encoding="utf-8")


def test_wrong_usage_says_what_to_write(tmp_path: Path) -> None:
    done = run_cli("diff", "--python", sys.executable, write(tmp_path, SCALED))
    assert done.returncode == 2 and "--python OLD --python NEW SCRIPT" in done.stderr
