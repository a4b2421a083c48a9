"""`irscope check` as a command: real scripts, its exit codes, and where everything is printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import BREAKS, COMPILED, run_cli_forked, write

INJECTS = COMPILED + 'print("::error::mine\\r::add-mask::x ##[group]y")\n'
FAILS = COMPILED + "raise ValueError('no')\n"


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    for name, source in {"breaks.py": BREAKS, "clean.py": INJECTS, "fails.py": FAILS}.items():
        write(tmp_path, source, name)
    return tmp_path


def test_several_scripts_with_one_summary_and_sarif_in_a_file(scripts: Path) -> None:
    ran = run_cli_forked("check", "breaks.py", "clean.py", "--format", "sarif", "-o", "out.sarif", cwd=scripts)
    assert ran.returncode == 1, ran.stderr
    lines = ran.stdout.splitlines()
    assert lines[-1] == "1 of 2 scripts failed the check"
    assert lines[-3].startswith("breaks.py: findings · 1 break · ") and lines[-2].startswith(
        "clean.py: clean · no findings · 1 graph"
    )
    (result,) = json.loads((scripts / "out.sarif").read_text())["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "breaks.py"}
    assert (place["region"]["startLine"], place["region"]["startColumn"]) == (5, 5)


def test_what_a_script_prints_is_no_command_for_github(scripts: Path) -> None:
    ran = run_cli_forked("check", "clean.py", "breaks.py", "--format", "github", "--max-graphs", "0", cwd=scripts)
    assert ran.returncode == 1
    assert "\n::error file=breaks.py,line=5,endLine=5,col=5,endColumn=16,title=Graph break GB0059::" in ran.stdout
    assert ran.stdout.startswith(
        "::error file=clean.py,title=max_graphs::1 graph; max_graphs allows 0. (--max-graphs)\n"
    )
    assert ran.stderr == "| ::error::mine\n| ::add-mask::x # #[group]y\n| hi\n"


def test_a_baseline_of_all_scripts_leaves_what_is_new(scripts: Path) -> None:
    written = run_cli_forked("check", "breaks.py", "--write-baseline", "known.json", cwd=scripts)
    assert written.returncode == 0, written.stdout
    arguments = ["check", "breaks.py", "--baseline", "known.json", "--format", "json"]
    ran = run_cli_forked(*arguments, cwd=scripts)
    assert (ran.returncode, json.loads(ran.stdout)["verdict"]) == (0, "clean")
    assert ran.stderr == "hi\n"  # what the script prints
    write(scripts, BREAKS.replace("    return", "    print('new')\n    return"), "breaks.py")
    ran = run_cli_forked(*arguments, cwd=scripts)
    (script,) = json.loads(ran.stdout)["scripts"]
    assert (ran.returncode, script["failing"]) == (1, [0])
    assert script["report"]["findings"][0]["range"]["start"]["line"] == 6


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["clean.py", "--fail-on", "graph-brake"], 2, "Did you mean graph-break?"),
        (["clean.py", "--lane", "fast", "--max-kernels", "1"], 2, "--max-kernels needs the deep lane"),
        (["clean.py", "--max-graphs", "-1"], 2, ""),
        ([], 2, "SCRIPT"),
        (["clean.py", "--baseline", "none.json"], 2, "none.json is not an irscope baseline"),
        (["none.py"], 2, "File not found"),
        (["clean.py", "none.py"], 2, "File not found"),
        (["breaks.py", "fails.py"], 4, "ValueError: no"),
        (["breaks.py", "--fail-on", "none", "--max-graphs", "2"], 0, "breaks.py: clean"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_exit_codes(scripts: Path, arguments: list[str], code: int, said: str) -> None:
    ran = run_cli_forked("check", *arguments, cwd=scripts)
    assert (ran.returncode, said in ran.stdout + ran.stderr) == (code, True), ran.stdout + ran.stderr


def test_kernels_and_arguments(tmp_path: Path) -> None:
    source = COMPILED + "import sys\nassert sys.argv[1:] == ['--steps', '3']\n"
    script = write(tmp_path, source)
    ran = run_cli_forked("check", script, "--max-kernels", "0", "--max-compile-seconds", "600", "--", "--steps", "3")
    assert ran.returncode == 1, ran.stdout
    assert "over its bound: 1 kernel; max_kernels allows 0. (--max-kernels)" in ran.stdout
    assert "max_compile_seconds" not in ran.stdout
