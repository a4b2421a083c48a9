"""Modules of the user's that have the name of irscope, of torch, or of something that irscope has imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support import run_captured, run_cli, run_forked, run_plain, write

NEEDED = {"importlib", "runpy", "dataclasses", "typing"}
"""The interpreter itself needs parts of the first two; beside files with the other names nobody can import torch."""
PRINTS = "import irscope\nprint(irscope.value)\n"


def test_a_module_beside_the_script(tmp_path: Path) -> None:
    write(tmp_path, "value = 7\n", "irscope.py")
    script = write(tmp_path, PRINTS + "import torch\ntorch.compile(lambda x: x + 1, backend='eager')(torch.ones(3))\n")
    ran = run_cli("run", script, "--lane", "fast", "--exit-code")
    assert (ran.returncode, ran.stdout.partition("\n")[0]) == (0, "7")
    assert "1 compile," in ran.stdout
    forked = run_forked(script, tmp_path / "runs.db")
    assert (forked.stdout, len(forked.report.compiles)) == ("7\n", 1)


def test_a_package_with_names_of_ours(tmp_path: Path) -> None:
    for name in ("__init__", "runner/__init__", "store/store", "store/__init__", "protocol"):
        write(tmp_path, f"value = {name!r}\n", f"irscope/{name}.py")
    script = write(
        tmp_path,
        PRINTS
        + "from irscope.store.store import value\nprint(value)\nimport irscope.runner, irscope.protocol\nprint(irscope.protocol.value, irscope.runner.value)",
    )
    assert run_cli("run", script).stdout.startswith(run_plain(script).stdout)


def test_it_is_found_by_the_folder_of_a_module_of_tests_and_by_pythonpath(tmp_path: Path) -> None:
    write(tmp_path, "value = 7\n", "beside/irscope.py")
    write(tmp_path, PRINTS, "beside/mine.py")
    write(tmp_path, "def test_it():\n    import irscope\n    assert irscope.value == 7\n", "beside/test_mine.py")
    away = write(tmp_path, PRINTS)
    beside = tmp_path / "beside"
    assert run_cli("run", "-m", "mine", cwd=beside).stdout.startswith("7\n")
    ran = run_captured(away, tmp_path / "runs.db", env={"PYTHONPATH": str(beside)})  # the command needs its own irscope
    assert ran.stdout == "7\n"
    alone = {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"
    }  # pytest cannot begin either where it does not find irscope's plugin
    assert "1 passed" in run_cli("run", "--pytest", "test_mine.py::test_it", env=alone, cwd=beside).stdout


def test_a_script_that_wants_irscope_gets_it(tmp_path: Path) -> None:
    script = write(tmp_path, "from irscope.testing import no_graph_breaks\nimport irscope\nprint(irscope.__name__)")
    assert run_cli("run", script).stdout.startswith("irscope\n")


@pytest.mark.parametrize("by", ["script", "PYTHONPATH"])
def test_all_that_is_imported_before_the_script(tmp_path: Path, by: str) -> None:
    """Whatever irscope has in the process, the script gets the file of that name as in plain Python."""
    listing = "import sys\nprint(*sorted({name.partition('.')[0] for name in sys.modules} - {'__main__'}))"
    probe = write(tmp_path, listing, "probe.py")
    before = run_plain(probe).stdout.split()
    names = (
        set(run_cli("run", probe).stdout.partition("\n")[0].split())
        - set(before)
        - {*sys.builtin_module_names, *NEEDED}
    )
    assert len(names) > 50
    assert "irscope" in names
    script = write(
        tmp_path,
        "\n".join(f"import {name}\nprint(getattr({name}, '__file__', ''))" for name in sorted(names)),
        "here/script.py",
    )
    folder = script.parent if by == "script" else tmp_path / "path"
    for name in names:
        write(folder, "", f"{name}.py")
    env = {"PYTHONPATH": str(folder)} if by != "script" else {}
    plain = run_plain(script, env=env)
    assert plain.returncode == 0
    assert plain.stdout.count(str(folder)) > 50
    ran = run_captured(script, tmp_path / "runs.db", env=env)
    assert (ran.stdout, ran.report.outcome.exit_code) == (plain.stdout, 0)


@pytest.mark.parametrize("name", ["torch.py", "torch/__init__.py"])
def test_a_file_that_hides_torch(tmp_path: Path, name: str) -> None:
    hiding = write(tmp_path, "", name)
    ran = run_cli("run", write(tmp_path, "import torch\n"), "--json")
    assert ran.returncode == 3
    told = f"`import torch` finds {hiding}, which is not PyTorch: it hides the package of that name. Rename it."
    assert json.loads(ran.stdout)["outcome"]["message"] == told


def test_a_file_that_hides_triton_is_named(tmp_path: Path) -> None:
    """PyTorch imports it as in plain Python, and may fail for it."""
    hiding = write(tmp_path, "value = 7\n", "triton.py")
    ran = run_captured(write(tmp_path, "import triton\nprint(triton.value)\n"), tmp_path / "runs.db")
    (gap,) = ran.report.capture_gaps
    assert (ran.stdout, gap.what) == ("7\n", "what PyTorch does with triton")
    assert gap.why == f"`import triton` finds {hiding}, in PyTorch, too: rename it"


def test_a_folder_without_init_hides_no_torch(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    script = write(tmp_path, "import importlib.util\nprint(importlib.util.find_spec('torch').origin)")
    assert run_cli("run", script).stdout.startswith(run_plain(script).stdout)
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    ran = run_cli("run", script, "--python", bare / "bin" / "python")
    assert ran.returncode == 3
    assert (
        f"`import torch` finds the folder {tmp_path / 'torch'}, which is not PyTorch. PyTorch is not installed"
        in ran.stdout
    )
