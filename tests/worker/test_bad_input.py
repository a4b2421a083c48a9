"""Everything that can be wrong with what irscope is given: each has its own message, and nothing hangs or is lost."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import RunScript
from irscope.driver import RunSpec, execute
from irscope.protocol import (
    Budget,
    CompileSeen,
    Lane,
    Limit,
    Message,
    OutcomeKind,
    Report,
    ScriptEnded,
    Started,
    from_json,
)
from irscope.store import Store
from support import run_cli, run_plain, write

COMPILED = """\
import torch

@torch.compile
def f(x):
    return x.sin() * 2 + 1

f(torch.ones(3))
"""
BREAKS = COMPILED.replace("    return", "    print('hi')\n    return")


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
    "os._exit": (BREAKS + "import os\nos._exit(5)\n", OutcomeKind.CRASHED, 5, "The script's process ended with exit code 5 without a word of how (os._exit, a script that closes every file descriptor, or the interpreter died).", 2),
    "segfault": (COMPILED + "import ctypes\nctypes.string_at(0)\n", OutcomeKind.CRASHED, None, "The script's process was killed by SIGSEGV.", 1),
    "abort": ("import os\nos.abort()\n", OutcomeKind.CRASHED, None, "The script's process was killed by SIGABRT.", 0),
    "killed": ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", OutcomeKind.CRASHED, None, "The script's process was killed by SIGKILL.", 0),
    "dies at exit": (COMPILED + "import atexit, os\natexit.register(os._exit, 9)\n", OutcomeKind.SCRIPT_ERROR, 9, "The script ended well, but its process ended with exit code 9.", 1),
    "deletes itself": ("import os\nos.remove(__file__)\n" + BREAKS, OutcomeKind.COMPLETED, 0, "The script ran to its end.", 2),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILING)
def test_a_script_that_fails(name: str, run_script: RunScript, tmp_path: Path) -> None:
    source, kind, exit_code, message, compiles = FAILING[name]
    ran = run_script(source)
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
    "no such file": lambda folder, _: ([folder / "gone.py"], {}, f"There is no file {folder}/gone.py."),
    "a folder": lambda folder, _: ([folder], {}, f"{folder} is a folder. Name a Python script or a notebook."),
    "no such interpreter": lambda folder, _: (
        [write(folder, COMPILED), "--python", "/gone/python"],
        {},
        "There is no Python interpreter at /gone/python. Name one that has torch (--python PATH, or the setting irscope.python).",
    ),
    "an interpreter that is none": lambda folder, _: (
        [write(folder, COMPILED), "--python", write(folder, "", "no-python")],
        {},
        f"There is no Python interpreter at {folder}/no-python. Name one that has torch (--python PATH, or the setting irscope.python).",
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
        f"{folder}/fake/torch does not look like PyTorch: it has no version. Reinstall torch in {bare}.",
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
    }
    text = run_cli("show", env=env)
    assert f"environment-error: {message}\n0 findings, 0 compiles, torch not found" in text.stdout


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
        f"{path} is no Python that irscope can use: {why} before the script began. Name one"
    )


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
        (["fly"], "invalid choice: 'fly'"),
        (["run", "x.py", "--lane", "middle"], "invalid choice: 'middle'"),
        (["run", "x.py", "--budget", "0"], "the budget must be more than 0 seconds"),
        (["run", "x.py", "--budget", "soon"], "'soon' is no number of seconds"),
        (["run", "x.py", "--memory-budget", "0"], "the budget must be more than 0 megabytes"),
        (["run", "x.py", "--steady-calls", "-1"], "'-1' is no number of calls"),
        (["run", "-m", "x", "--pytest", "y"], "-m and --pytest: name one of them"),
        (["list", "--", "x"], "only `irscope run`, `values` and `diverge` take arguments after --"),
        (["show", "no-such-run"], "No run is called no-such-run."),
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


# --- no C++ compiler --------------------------------------------------------------------------------------------------


def test_no_cpp_compiler(run_script: RunScript, tmp_path: Path) -> None:
    env = {"CXX": "/nonexistent/c++", "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cold")}
    fast = run_script(BREAKS, "fast", env=env)
    assert fast.report.outcome.kind is OutcomeKind.COMPLETED
    assert [finding.code for finding in fast.findings("graph-break")] == ["GB0059"]
    deep = run_script(COMPILED, "deep", env=env)
    assert deep.report.outcome.kind is OutcomeKind.SCRIPT_ERROR
    (finding,) = deep.findings("compile-error")
    assert finding.code == "no-cpp-compiler"
    assert finding.file == str(tmp_path / "script.py")
    assert finding.hints[0].startswith("Install a C++ compiler: `apt install g++` on Debian")
    assert [compile.outcome.value for compile in deep.report.compiles] == ["error"]


# --- stopping ---------------------------------------------------------------------------------------------------------

ENDLESS = BREAKS + "import time\nprint('at work', flush=True)\nwhile True:\n    time.sleep(0.01)\n"


def test_a_budget(run_script: RunScript) -> None:
    ran = run_script("print('at work', flush=True)\nwhile True:\n    pass\n", budget=Budget(seconds=3.0))
    assert ran.report.outcome.kind is OutcomeKind.BUDGET
    assert ran.report.outcome.limit is Limit.SECONDS
    assert ran.report.outcome.message.startswith(
        "Stopped after 3 s, the budget of seconds; what was found until then is kept. To let it run longer raise --budget "
    )
    assert ran.report.outcome.exit_code is None
    assert ran.stdout == "at work\n"


def test_cancel_ends_the_whole_group_and_keeps_what_was_found(tmp_path: Path) -> None:
    source = ENDLESS.replace(
        "import time\n",
        "import subprocess, sys, time\nchild = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\nprint('child', child.pid, flush=True)\n",
    )
    cancel, printed = threading.Event(), []

    def on_output(_: str, text: str) -> None:
        printed.append(text)
        if "at work" in text:
            cancel.set()

    with Store(str(tmp_path / "runs.db")) as store:
        run, outcome = execute(
            RunSpec(str(write(tmp_path, source)), lane=Lane.FAST), store, on_output=on_output, cancel=cancel
        )
        report = store.report(run)
    assert outcome.kind is OutcomeKind.CANCELLED
    assert outcome.message == "The run was cancelled; what it found until then is kept."
    assert report.outcome == outcome
    assert [finding.code for finding in report.findings] == ["GB0059"]
    child = re.search(r"child (\d+)", "".join(printed))
    assert child is not None
    assert _gone(int(child[1]))


def _gone(pid: int) -> bool:
    """Whether a process has ended (a zombie has), within ten seconds."""
    for _ in range(100):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.1)
    return False


def test_cancelled_before_it_began(tmp_path: Path) -> None:
    cancel = threading.Event()
    cancel.set()
    with Store(str(tmp_path / "runs.db")) as store:
        _, outcome = execute(RunSpec(str(write(tmp_path, "print(1)"))), store, on_output=lambda *_: None, cancel=cancel)
    assert outcome.kind is OutcomeKind.CANCELLED


def test_interrupted_on_the_command_line(tmp_path: Path) -> None:
    script, store = write(tmp_path, ENDLESS), tmp_path / "runs.db"
    process = subprocess.Popen(
        [str(Path(sys.executable).parent / "irscope"), "run", str(script), "--lane", "fast", "--store", str(store)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert any("at work" in line for line in process.stdout)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "irscope: interrupted" in err
    with Store(str(store)) as opened:
        report = opened.report(opened.find_run())
    assert (report.outcome.kind, report.outcome.message) == (OutcomeKind.CANCELLED, "irscope was interrupted.")
    assert len(report.findings) == 1


def test_a_listener_that_fails_ends_the_run(tmp_path: Path) -> None:
    def on_message(message: Message) -> None:
        if isinstance(message, CompileSeen):
            raise RuntimeError("the listener's own")

    with Store(str(tmp_path / "runs.db")) as store:
        with pytest.raises(RuntimeError, match="the listener's own"):
            execute(
                RunSpec(str(write(tmp_path, ENDLESS)), lane=Lane.FAST),
                store,
                on_message=on_message,
                on_output=lambda *_: None,
            )
        assert store.report(store.find_run()).outcome.kind is OutcomeKind.CANCELLED


# --- hostile scripts --------------------------------------------------------------------------------------------------


def test_output_is_not_kept_in_memory(tmp_path: Path) -> None:
    """Two hundred megabytes pass through in small pieces."""
    sizes: list[int] = []
    source = "import sys\nline = 'x' * 1_000_000 + '\\n'\nfor _ in range(200):\n    sys.stdout.write(line)\n"
    with Store(str(tmp_path / "runs.db")) as store:
        _, outcome = execute(
            RunSpec(str(write(tmp_path, source))), store, on_output=lambda _, text: sizes.append(len(text))
        )
    assert outcome.kind is OutcomeKind.COMPLETED
    assert sum(sizes) == 200 * 1_000_001
    assert max(sizes) <= 1 << 16


def test_a_character_cut_in_two_by_the_pipe(run_script: RunScript) -> None:
    ran = run_script("import sys\nsys.stdout.write('x' + 'é' * 200_000)\n")
    assert ran.stdout == "x" + "é" * 200_000


@pytest.mark.parametrize("new_session", [False, True])
def test_a_child_that_prints_on_and_on(run_script: RunScript, new_session: bool) -> None:
    ran = run_script(
        f"import subprocess\nsubprocess.Popen('yes & sleep 20; kill $!', shell=True, start_new_session={new_session})\n"
    )
    assert ran.report.outcome.kind is OutcomeKind.COMPLETED


def test_a_script_that_closes_every_descriptor(run_script: RunScript, tmp_path: Path) -> None:
    """And opens its own in their place: they must stay its own."""
    ran = run_script(
        BREAKS
        + f"""
import os
os.closerange(3, 4096)
files = [open({str(tmp_path)!r} + f"/mine-{{i}}", "w") for i in range(20)]
for file in files:
    file.write("mine alone")
    file.flush()
f(torch.ones(3, 3))
f(torch.ones(3, 3, 3))
print("end", flush=True)
""",
        "fast",
    )
    assert ran.stdout.endswith("end\n")
    assert {path.read_text() for path in tmp_path.glob("mine-*")} == {"mine alone"}
    assert [finding.code for finding in ran.findings("graph-break")] == ["GB0059"]
    assert ran.report.outcome.exit_code == 0


def test_a_script_that_writes_into_every_descriptor(run_script: RunScript) -> None:
    ran = run_script(
        BREAKS
        + """
import os, stat
for fd in range(3, 1024):
    try:
        if stat.S_ISFIFO(os.fstat(fd).st_mode):
            os.write(fd, b'\\xff nonsense {"is": "Refused"}\\n[1]\\n\\n{"is": "Nothing"}\\n3\\n')
    except OSError:
        pass
"""
    )
    assert ran.findings("graph-break")


def test_a_script_that_breaks_the_modules_we_use(run_script: RunScript) -> None:
    ran = run_script(
        "import json, sys, logging, os\njson.dumps = json.loads = None\nlogging.disable(logging.CRITICAL)\nsys.meta_path.clear()\n"
        "print('still here')\n"
    )
    assert ran.stdout == "still here\n"
    assert ran.report.outcome.exit_code == 0


@pytest.mark.parametrize(
    "silence",
    [
        "logging.disable(logging.CRITICAL)",
        "logging.config.dictConfig({'version': 1})",
        "logging.getLogger('torch').setLevel(logging.CRITICAL)",
    ],
)
def test_a_script_that_silences_logging(silence: str, run_script: RunScript) -> None:
    """What irscope reads from PyTorch's loggers still comes; what the script silenced is not printed."""
    source = f"""
import logging, logging.config
{silence}
import torch
{silence}

@torch.compile
def f(x, tag):
    print("hi")
    return x + len(tag)

for n in range(12):
    f(torch.ones(3), "x" * n)
"""
    ran = run_script(source)
    assert [finding.code for finding in ran.findings("graph-break")] == ["GB0059"]
    assert ran.findings("recompilation")
    assert [finding.code for finding in ran.findings("recompile-limit")] == ["GB0039"]
    assert ran.stderr == ""


def test_a_module_of_the_script_s_folder_named_like_ours(run_script: RunScript, tmp_path: Path) -> None:
    for name in ("protocol", "store", "source", "server", "runner", "capture", "graphs", "dis", "zlib"):
        write(tmp_path, f"NAME = {name!r}\n", f"{name}.py")
    ran = run_script("import protocol, store, server\nprint(protocol.NAME, store.NAME, server.NAME)\n" + BREAKS)
    assert ran.stdout.startswith("protocol store server\n")
    assert ran.findings("graph-break")


def test_the_order_of_messages(run_script: RunScript) -> None:
    ran = run_script(BREAKS)
    kinds = [type(message) for message in ran.messages]
    assert kinds[0] is Started
    assert kinds[-1] is ScriptEnded
    assert kinds.index(CompileSeen) > 0
    facts: Any = ran.messages[-1]
    assert (facts.exit_code, facts.error) == (0, "")


def test_a_run_without_irscope_installed(tmp_path: Path, bare_python: str) -> None:
    """Another interpreter needs only torch; this one has not even that, but its own clear words."""
    assert run_plain(write(tmp_path, "import irscope", "probe.py")).returncode == 0
    probe = subprocess.run([bare_python, "-c", "import irscope"], capture_output=True, check=False)
    assert probe.returncode == 1
    done = run_cli("run", write(tmp_path, "print(1)"), "--python", bare_python)
    assert "PyTorch is not installed" in done.stdout
