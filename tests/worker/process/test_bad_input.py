"""Everything that can be wrong with what irscope is given: each has its own message, and nothing hangs or is lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from irscope.protocol import OutcomeKind, Report, from_json
from irscope.store.store import Store
from irscope.worker.client import Worker
from support import BREAKS, COMPILED, Ran, RunScript, run_captured, run_cli, run_forked, run_plain, write

# --- scripts that fail by themselves ----------------------------------------------------------------------------------

# name → source, kind, exit code, message (`SCRIPT` is its path), how many compiles
FAILING: dict[str, tuple[str, OutcomeKind, int | None, str, int]] = {
    "syntax error": ("x = 1\ndef f(:\n    pass\n", OutcomeKind.SCRIPT_ERROR, 1, "SyntaxError: invalid syntax (SCRIPT:2)", 0),
    "import error": ("import nothing_of_that_name\n", OutcomeKind.SCRIPT_ERROR, 1, "ModuleNotFoundError: No module named 'nothing_of_that_name' (SCRIPT:1)", 0),
    "exception": (BREAKS + "def g():\n    raise ValueError('no\\nmore')\ng()\n", OutcomeKind.SCRIPT_ERROR, 1, "ValueError: no (SCRIPT:10)", 2),
    "exception without text": ("raise ValueError\n", OutcomeKind.SCRIPT_ERROR, 1, "ValueError (SCRIPT:1)", 0),
    "exit code": (COMPILED + "import sys\nsys.exit(3)\n", OutcomeKind.SCRIPT_ERROR, 3, "the script ended with sys.exit(3)", 1),
    "exit text": ("import sys\nsys.exit('bad')\n", OutcomeKind.SCRIPT_ERROR, 1, "the script ended with sys.exit('bad')", 0),
    "interrupt": ("raise KeyboardInterrupt\n", OutcomeKind.SCRIPT_ERROR, None, "The script ended with KeyboardInterrupt.", 0),
    "no torch.compile": ("print(1)\n", OutcomeKind.COMPLETED, 0, "The script ran to its end, and nothing was compiled: no function under torch.compile was called with tensors.", 0),
    "torch without compile": ("import torch\nprint(torch.ones(3).sum())\n", OutcomeKind.COMPLETED, 0, "The script ran to its end, and nothing was compiled: no function under torch.compile was called with tensors.", 0),
    "empty": ("", OutcomeKind.COMPLETED, 0, "The script ran to its end, and nothing was compiled: no function under torch.compile was called with tensors.", 0),
    "os._exit": (BREAKS + "import os\nos._exit(5)\n", OutcomeKind.SCRIPT_ERROR, 5, "The script's process ended at once with exit code 5, as os._exit(5) does: functions at exit did not run. What was captured up to then is kept.", 2),
    "segfault": (COMPILED + "import ctypes\nctypes.string_at(0)\n", OutcomeKind.CRASHED, None, "The script's process was killed by SIGSEGV (SCRIPT:9).", 1),
    "abort": ("import os\nos.abort()\n", OutcomeKind.CRASHED, None, "The script's process was killed by SIGABRT (SCRIPT:2).", 0),
    "killed": ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", OutcomeKind.CRASHED, None, "The script's process was killed by SIGKILL.", 0),
    "dies at exit": (COMPILED + "import atexit, os\natexit.register(os._exit, 9)\n", OutcomeKind.SCRIPT_ERROR, 9, "The script succeeded, but its process ended with exit code 9.", 1),
    "deletes itself": ("import os\nos.remove(__file__)\n" + BREAKS, OutcomeKind.COMPLETED, 0, "The script ran to its end.", 2),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILING)
def test_a_script_that_fails(name: str, run_script: RunScript, tmp_path: Path, shared_worker: Worker | None) -> None:
    """Those that import torch run in forks, which do not import it again; the others in fresh processes."""
    source, kind, exit_code, message, compiles = FAILING[name]
    ran = run_script(source, worker=shared_worker if "import torch" in source else None)
    outcome = ran.report.outcome
    assert (outcome.kind, outcome.exit_code) == (kind, exit_code)
    assert outcome.message == message.replace("SCRIPT", str(tmp_path / "script.py"))
    assert len(ran.report.compiles) == compiles
    if source.endswith(BREAKS) or source.startswith(BREAKS):
        assert [finding.code for finding in ran.findings("graph-break")] == ["GB0059"]
    assert ran.report.capture_gaps == ()
    with Store(ran.store) as store:
        assert store.report(ran.report.run) == ran.report


def test_the_terminal_and_the_json_say_the_same(tmp_path: Path) -> None:
    """The script's own failure is no failure of irscope: exit code 0, the script's code in the outcome."""
    script = write(tmp_path, "import sys\nprint('to stdout')\nsys.exit(3)\n")
    text = run_cli("run", script, "--lane", "fast")
    assert text.returncode == 0
    assert text.stdout.startswith("to stdout\nscript-error, exit code 3: the script ended with sys.exit(3)\n")
    data = run_cli("run", script, "--lane", "fast", "--json")
    assert data.returncode == 0
    assert data.stderr == "to stdout\n"
    report = from_json(Report, json.loads(data.stdout))
    assert (report.outcome.kind, report.outcome.exit_code) == (OutcomeKind.SCRIPT_ERROR, 3)
    assert report.torch is not None
    assert report.torch.startswith("2.")


# --- environments that cannot run it ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter with nothing installed."""
    folder = tmp_path_factory.mktemp("bare") / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return str(folder / "bin" / "python")


def fake_torch(folder: Path, version: str | None) -> dict[str, str]:
    """Variables under which `torch` is a package of that version (which is never imported)."""
    package = folder / "fake" / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemError('irscope must not import torch')\n")
    if version is not None:
        (package / "version.py").write_text(f"from typing import Optional\n__version__ = '{version}'\ndebug = False\n")
    return {"PYTHONPATH": str(package.parent)}


def unreadable(folder: Path) -> Path:
    path = write(folder, "print(1)\n")
    path.chmod(0)
    return path


# name → arguments of `irscope run`, variables, message
Case = tuple[list[object], dict[str, str], str]
REFUSED: dict[str, Callable[[Path, str], Case]] = {
    "no such file": lambda folder, _: ([folder / "gone.py"], {}, f"File not found: {folder}/gone.py."),
    "a folder": lambda folder, _: ([folder], {}, f"{folder} is a folder. Name a Python script or a notebook."),
    "no such interpreter": lambda folder, _: (
        [write(folder, COMPILED), "--python", "/gone/python"],
        {},
        "No Python interpreter at /gone/python. Name one that has torch (--python PATH, or the setting irscope.python).",
    ),
    "an interpreter that is none": lambda folder, _: (
        [write(folder, COMPILED), "--python", write(folder, "", "no-python")],
        {},
        f"No Python interpreter at {folder}/no-python. Name one that has torch (--python PATH, or the setting irscope.python).",
    ),
    "no torch": lambda folder, bare: (
        [write(folder, COMPILED), "--python", bare],
        {},
        f"PyTorch is not installed in {bare}. Install torch there (pip install torch), or choose another interpreter (--python PATH, or the setting irscope.python).",
    ),
    "no torch, by variable": lambda folder, bare: (
        [write(folder, COMPILED)],
        {"IRSCOPE_PYTHON": bare},
        f"PyTorch is not installed in {bare}. Install torch there (pip install torch), or choose another interpreter (--python PATH, or the setting irscope.python).",
    ),
    "torch too old": lambda folder, bare: (
        [write(folder, COMPILED), "--python", bare],
        fake_torch(folder, "2.4.0+cu121"),
        f"PyTorch 2.4.0+cu121 in {bare} is too old: irscope needs 2.9 or newer. Upgrade it, or choose another interpreter.",
    ),
    "torch far too old": lambda folder, bare: (
        [write(folder, COMPILED), "--python", bare],
        fake_torch(folder, "1.13.1"),
        f"PyTorch 1.13.1 in {bare} is too old: irscope needs 2.9 or newer. Upgrade it, or choose another interpreter.",
    ),
    "no version": lambda folder, bare: (
        [write(folder, COMPILED), "--python", bare],
        fake_torch(folder, None),
        f"`import torch` finds {folder}/fake/torch/__init__.py, which is not PyTorch: it hides the package of that name. Rename it.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_an_environment_that_cannot_run_it(name: str, tmp_path: Path, bare_python: str) -> None:
    args, env, message = REFUSED[name](tmp_path, bare_python)
    data = run_cli("run", *args, "--json", env=env)
    assert data.returncode == 3, data.stderr
    outcome = json.loads(data.stdout)["outcome"]
    assert outcome == {
        "kind": "environment-error",
        "exit_code": None,
        "message": message,
        "seconds": outcome["seconds"],
        "limit": None,
        "place": None,
    }
    text = run_cli("run", *args, env=env)
    assert text.stdout == f"environment-error: {message}\n"
    assert "environment-error" not in run_cli("list").stdout, "it does not hide the runs before it"


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser reads everything")
def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    done = run_cli("run", unreadable(tmp_path))
    assert done.returncode == 3
    assert "cannot be read: Permission denied." in done.stdout


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("true", "it ended with exit code 0"),
        ("false", "it ended with exit code 1"),
        ("sh", "it ended with exit code 2"),
    ],
)
def test_an_interpreter_that_is_not_python(program: str, why: str, tmp_path: Path) -> None:
    path = shutil.which(program)
    assert path is not None
    done = run_cli("run", write(tmp_path, COMPILED), "--python", path, "--json")
    assert done.returncode == 3, done.stdout
    assert json.loads(done.stdout)["outcome"]["message"].startswith(
        f"{path} is not a Python that irscope can use: {why} before the script began. Name one"
    )


def test_names_with_a_line_break(tmp_path: Path, shared_worker: Worker | None) -> None:
    ran = run_captured(write(tmp_path, BREAKS, "two\nlines.py"), tmp_path / "runs.db", worker=shared_worker)
    assert [(finding.code, finding.range.start.line) for finding in ran.findings("graph-break")] == [("GB0059", 5)]
    assert ran.report.capture_gaps == ()


def test_names_that_are_not_utf_8(tmp_path: Path) -> None:
    """PyTorch itself fails on them, with a RuntimeError of pybind11."""
    script = write(tmp_path, BREAKS, os.fsdecode(b"caf\xe9.py"))
    done = run_cli("run", script)
    assert done.returncode == 3
    assert done.stdout.startswith("environment-error: PyTorch cannot compile what is in ")
    assert "caf\\udce9.py: the name is not UTF-8. Rename the file." in done.stdout


def test_what_cannot_be_started(tmp_path: Path) -> None:
    program = write(tmp_path, "no program at all", "program")
    program.chmod(0o755)
    script = write(tmp_path, COMPILED)
    done = run_cli("run", script, "--python", program, cwd=tmp_path)
    assert done.returncode == 3
    assert f"environment-error: {program} could not be started in {tmp_path}: Exec format error." in done.stdout
    done = run_cli("run", script, "--cwd", tmp_path / "gone")
    assert done.returncode == 3
    assert f"could not be started in {tmp_path}/gone: No such file or directory." in done.stdout


def test_an_old_python(tmp_path: Path) -> None:
    old = next(Path("/root/.pyenv/versions").glob("3.8.*/bin/python"), None) or next(
        Path("/opt").glob("python3.8/bin/python"), None
    )
    if old is None:
        pytest.skip("no Python 3.8 here")
    done = run_cli("run", write(tmp_path, COMPILED), "--python", old)
    assert done.returncode == 3
    assert "Python 3.8 is too old: irscope needs Python 3.10 or newer. Choose another interpreter." in done.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "required: COMMAND"),
        (["run"], "required: SCRIPT"),
        (["fly"], "unknown command: fly."),
        (["run", "x.py", "--lane", "middle"], "invalid choice: 'middle'"),
        (["run", "x.py", "--budget", "0"], "the budget must be more than 0 seconds"),
        (["run", "x.py", "--budget", "soon"], "Invalid number of seconds: 'soon'"),
        (["run", "x.py", "--memory-budget", "0"], "the budget must be more than 0 megabytes"),
        (["run", "x.py", "--steady-calls", "-1"], "Invalid number of calls: '-1'"),
        (["run", "-m", "x", "--pytest", "y"], "-m and --pytest: use only one of them"),
        (
            ["list", "--", "x"],
            "only `irscope run`, `check`, `verify-target`, `fix`, `tune`, `compare`, `profile`, `diff`, `values`, `diverge` and `watch` take arguments after --",
        ),
        (["verify-target", "h100", "EMPTY/none.py"], "The script did not run to its end: File not found: "),
        (["check", "EMPTY/none.py"], "File not found: "),
        (["show", "no-such-run"], "No run is named no-such-run."),
        (["show", "--store", "EMPTY/runs.db"], "yet. Start one: irscope run"),
    ],
)
def test_wrong_usage(args: list[str], message: str, tmp_path: Path) -> None:
    done = run_cli(*[arg.replace("EMPTY", str(tmp_path)) for arg in args])
    assert done.returncode == 2
    assert done.stdout == ""
    assert message in done.stderr


def test_a_store_that_is_none(tmp_path: Path) -> None:
    script = write(tmp_path, COMPILED)
    done = run_cli("run", script, "--store", script)
    assert done.returncode == 3
    assert done.stderr.startswith(
        f"irscope: The run store {script} cannot be used: file is not a database. Name another"
    )
    assert script.read_text() == COMPILED


def test_a_run_without_irscope_installed(tmp_path: Path, bare_python: str) -> None:
    """Another interpreter needs only torch; this one has not even that, but its own clear words."""
    assert run_plain(write(tmp_path, "import irscope", "probe.py")).returncode == 0
    probe = subprocess.run([bare_python, "-c", "import irscope"], capture_output=True, check=False)
    assert probe.returncode == 1
    done = run_cli("run", write(tmp_path, "print(1)"), "--python", bare_python)
    assert "PyTorch is not installed" in done.stdout


# --- no C++ compiler --------------------------------------------------------------------------------------------------


NO_COMPILER = "import torch._inductor.config\ntorch._inductor.config.cpp.cxx = ('/nonexistent/c++',)\n"


def test_no_cpp_compiler(tmp_path: Path) -> None:
    def run_script(source: str, lane: str) -> Ran:
        script = write(tmp_path, source.replace("import torch\n", "import torch\n" + NO_COMPILER))
        return run_forked(script, tmp_path / "runs.db", lane, env={"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cold")})

    fast = run_script(BREAKS, "fast")
    assert fast.report.outcome.kind is OutcomeKind.COMPLETED
    assert [finding.code for finding in fast.findings("graph-break")] == ["GB0059"]
    deep = run_script(COMPILED, "deep")
    assert deep.report.outcome.kind is OutcomeKind.SCRIPT_ERROR
    (finding,) = deep.findings("compile-error")
    assert finding.code == "no-cpp-compiler"
    assert finding.file == str(tmp_path / "script.py")
    assert finding.hints[0].startswith("Install a C++ compiler: `apt install g++` on Debian")
    assert [compile.outcome.value for compile in deep.report.compiles] == ["error"]
