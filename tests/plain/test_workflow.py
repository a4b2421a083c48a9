"""The workflow of continuous integration, which cannot be run here: what it calls exists, and it names our versions."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
yaml: Any = importlib.import_module("yaml")  # of transformers
JOBS: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))["jobs"]
COMMANDS = [step["run"] for job in JOBS.values() for step in job["steps"] if "run" in step]


def test_the_commands_exist() -> None:
    scripts = json.loads((ROOT / "package.json").read_text("utf-8"))["scripts"]
    called = [name for command in COMMANDS for name in re.findall(r"npm run (\S+)|npm (test)", command)]
    files = [name for command in COMMANDS for name in re.findall(r"bash (\S+)|pytest (\S+)", command)]
    assert called and files
    assert {"".join(name) for name in called} <= set(scripts)
    assert [name for name in map("".join, files) if not (ROOT / name).exists()] == []


def test_each_job_waits_for_jobs_that_exist() -> None:
    needed = {name for job in JOBS.values() for name in job.get("needs", [])}
    assert needed and needed <= set(JOBS)


def test_the_classifiers_name_the_python_versions_that_are_tested() -> None:
    (matrix,) = [job["strategy"]["matrix"] for job in JOBS.values() if "strategy" in job]
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert re.findall(r"Programming Language :: Python :: (3\.\d+)", project) == matrix["python-version"]
    assert f'requires-python = ">={matrix["python-version"][0]}"' in project


def test_the_packages_are_those_of_npm_test() -> None:
    setup = (ROOT / "scripts/setup.mjs").read_text("utf-8")
    pins = [pin for command in COMMANDS for pin in re.findall(r"\w+==[\w.]+(?:; [^\"]+)?", command)]
    assert len(pins) == 3
    assert [pin for pin in pins if f'"{pin}"' not in setup] == []


def test_only_a_tag_publishes() -> None:
    publishing = {
        name: job for name, job in JOBS.items() if "secrets." in str(job) or job.get("permissions", {}).get("id-token")
    }
    assert set(publishing) == {"publish-to-pypi", "publish-to-marketplaces"}
    assert {job["if"] for job in publishing.values()} == {"startsWith(github.ref, 'refs/tags/v')"}
