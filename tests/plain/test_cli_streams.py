"""What the command line does where a character, or anything at all, cannot be written; its exit codes for faults."""

from __future__ import annotations

import io
import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from facts import a_compile, a_finding, a_kernel, a_range, an_outcome
from irscope.cli.main import main
from irscope.cli.report import finding_lines
from irscope.cli.text import Paint
from irscope.protocol import Lane, Origin, StageRef
from irscope.store.store import Store
from irscope.system.streams import carry_out, shown

GRAPH = (Path(__file__).parent / "graphs" / "inference.txt").read_text("utf-8")
IRSCOPE = "from irscope.cli import main; import sys; sys.exit(main())"
ASCII = {"PYTHONIOENCODING": "ascii"}
ENCODINGS = [ASCII, {"PYTHONIOENCODING": "cp1252"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}]
COMMANDS = [
    ["list"],
    ["list", "--json"],
    ["show"],
    ["show", "--json"],
    ["show", "--compile", "0/0"],
    ["show", "--stage", "output-code"],
    ["show", "--stage", "output-code", "--json"],
    ["show", "--kernel", "cpp_fused_relu_0"],
    ["show", "--line", "{script}:2"],
    ["show", "--guards"],
    ["show", "--time"],
    ["diff", "{first}", "{run}"],
    ["diff", "--stage", "0/0/inference-graph", "0/0/output-code"],
    ["graph", "--stage", "0/0/inference-graph"],
]
REFUSED = [
    ["show", "--kernel", "名│"],
    ["show", "--costs"],
    ["explain", "--fusion", "名", "→"],
    ["名"],
    ["run", "--名", "x.py"],
    ["run", "x.py", "--lane", "名"],
]
HELP = [[], *([each] for each in ("run", "list", "show", "explain", "diff", "view", "values", "diverge", "completion"))]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A store with two runs of a script whose names and text are not ASCII."""
    folder = tmp_path_factory.mktemp("名 é")
    script = folder / "модель.py"
    script.write_text("def 名(x):\n    return x.sin()  # │ · × é 🚀\n", encoding="utf-8")
    path = str(folder / "runs.db")
    runs = []
    with Store(path) as store:
        for number in range(2):
            run = store.create_run(str(script), [], Lane.DEEP, "digest")
            store.set_torch(run, "2.13.0+cpu")
            store.put_compile(run, a_compile(function="名" * (number + 1), file=str(script)))
            texts = {"inference-graph": GRAPH, "output-code": f"# 名 │ × {number}\n"}
            for position, (name, text) in enumerate(texts.items()):
                store.put_stage(run, "0/0", StageRef(f"0/0/{name}", name, "python", 0), text, position)
            kernel = a_kernel(origins=(Origin(str(script), 2),))
            store.put_stage(run, "0/0", StageRef(kernel.stage, "kernel", "cpp", 0), "// 名\n", 9)
            store.put_kernel(run, kernel)
            store.put_finding(run, a_finding(file=str(script), range=a_range(2, 11, 2, 18), message="`名` · ×2 → …"))
            store.set_outcome(run, an_outcome(message="名 → ∞"))
            runs.append(run)
    return {"store": path, "script": str(script), "first": runs[0], "run": runs[1]}


def irscope(
    *args: str, env: dict[str, str] | None = None, code: str = IRSCOPE, end: str = ""
) -> subprocess.CompletedProcess[bytes]:
    """The command in a process of its own; ``end`` is what a shell does with its output, as in ``>/dev/full``."""
    clean = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LC_ALL", "PYTHONUTF8")}
    command = ["bash", "-c", f'"$@" {end}', "bash", sys.executable, "-c", code, *args]
    return subprocess.run(
        command, capture_output=True, env={**clean, **(env or {})}, stdin=subprocess.DEVNULL, timeout=120
    )


@pytest.mark.parametrize("env", ENCODINGS, ids=lambda env: " ".join(env.values()))
def test_every_command_can_be_shown_in_every_encoding(env: dict[str, str], filled: dict[str, str]) -> None:
    """All in one process for each encoding: starting forty takes a minute."""
    lines = [[word.format(**filled) for word in command] for command in COMMANDS]
    wanted = [(0, line) for line in lines] + [(2, line) for line in REFUSED] + [(0, [*each, "--help"]) for each in HELP]
    code = """
import json, os, sys
from irscope.cli.main import main
for number, (wanted, line) in enumerate(json.loads(sys.argv[1])):
    print("====", number, flush=True)
    line = [os.fsdecode(word.encode()) for word in line]  # as arguments are
    if line == ["view", "--help"]:
        from irscope_server.view.__main__ import main as view
        do = lambda line: view(line[1:])
    else:
        do = main
    try:
        found = do(line)
    except SystemExit as stop:
        found = stop.code
    assert found == wanted, (line, found)
"""
    done = irscope(json.dumps(wanted), env={**env, "IRSCOPE_STORE": filled["store"]}, code=code)
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
    assert b"Traceback" not in done.stderr
    encoding = env.get("PYTHONIOENCODING", "ascii")
    parts = done.stdout.decode(encoding).split("==== ")[1:]
    assert len(parts) == len(wanted)
    assert "\\u540d" in parts[2] and "->" in parts[2] and "2 |     return x.sin()" in parts[2]
    assert json.loads(parts[3].partition("\n")[2])["compiles"][0]["function"] == "名名"
    assert json.loads(parts[6].partition("\n")[2])[0]["text"] == "# 名 │ × 1\n"


def test_a_character_that_a_stream_lacks_has_a_stand_in() -> None:
    ascii_stream = io.TextIOWrapper(io.BytesIO(), "ascii")
    assert shown("a │ b → c… ×2 · −1", ascii_stream) == "a | b -> c... x2 - -1"
    assert shown("名 é 🚀", ascii_stream) == "\\u540d \\xe9 \\U0001f680"
    assert shown("a\udce9b", io.TextIOWrapper(io.BytesIO(), "utf-8")) == "a\\xe9b"
    assert shown("名 → é", io.TextIOWrapper(io.BytesIO(), "utf-8")) == "名 → é"
    assert shown("× → é", io.TextIOWrapper(io.BytesIO(), "cp1252")) == "× -> é"


def test_carets_are_below_what_stands_in(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text("f('名', y.item())\n", encoding="utf-8")
    paint = Paint(io.TextIOWrapper(io.BytesIO(), "ascii"))
    lines = finding_lines(a_finding(file=str(file), range=a_range(1, 7, 1, 15), explanation="", hints=()), paint)
    source = paint.shown(next(line for line in lines if "item" in line))
    carets = paint.shown(next(line for line in lines if "^" in line))
    assert carets.index("^") == source.index("y.item")
    assert carets.count("^") == len("y.item()")


PRINTING = [
    ["list"],
    pytest.param(["list", "--json"], marks=pytest.mark.nightly),  # written as `list` is
    ["show", "--stage", "output-code"],
    ["--help"],
    pytest.param(["run", "--help"], marks=pytest.mark.nightly),  # written as `--help` is
    pytest.param(["--version"], marks=pytest.mark.nightly),
]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("args", PRINTING, ids=" ".join)
def test_a_full_disk_and_a_closed_output_are_told(args: list[str], filled: dict[str, str]) -> None:
    env = {"IRSCOPE_STORE": filled["store"]}
    full = irscope(*args, env=env, end=">/dev/full")
    assert (full.returncode, full.stderr.count(b"\n")) == (74, 1)
    assert full.stderr.startswith(b"irscope: Standard output cannot be written: No space left on device.")
    closed = irscope(*args, env=env, end=">&-")
    assert (closed.returncode, closed.stderr.count(b"\n")) == (74, 1)
    assert b"It is closed" in closed.stderr
    pipe = irscope(*args, env=env, end="| sleep 0; exit ${PIPESTATUS[0]}")
    assert (pipe.returncode, pipe.stderr) == (141, b"")
    for end in (">/dev/full 2>/dev/full", ">&- 2>&- <&-"):
        assert irscope(*args, env=env, end=end).returncode == 74


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_an_error_that_cannot_be_written_has_its_exit_code(filled: dict[str, str]) -> None:
    env = {"IRSCOPE_STORE": filled["store"]}
    assert irscope("show", "--kernel", "none", env=env, end="2>/dev/full").returncode == 2


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_the_servers_commands_as_well() -> None:
    for module in ("irscope_server.__main__", "irscope_server.dap.__main__", "irscope_server.view.__main__"):
        code = f"from {module} import main; import sys; sys.exit(main())"
        done = irscope("--help", code=code, end=">/dev/full")
        assert (done.returncode, done.stderr.count(b"\n")) == (74, 1), done.stderr


def test_the_address_of_the_page_has_names_of_every_locale(filled: dict[str, str]) -> None:
    code = """
import sys
from irscope_server.view.__main__ import _subject, parser
from irscope_server.view.address import Address, running
options = parser().read(sys.argv[1:])
subject = _subject(options)
assert running(options.store, subject) is None
print(Address(1, "token", options.store).url(subject))
"""
    addresses = []
    for env in ({"LC_ALL": "C", "PYTHONUTF8": "0"}, {"PYTHONUTF8": "1"}):
        done = irscope("--store", filled["store"], "--open", filled["script"] + ":2", env=env, code=code)
        assert done.returncode == 0, done.stderr.decode()
        addresses.append(done.stdout)
    assert addresses[0] == addresses[1] and b"%D0%BC" in addresses[0]


def test_a_long_text_fails_as_well(filled: dict[str, str]) -> None:
    """Longer than the buffers are: the failure comes in the middle of a write."""
    code = f"from irscope.system.streams import carry_out; import sys\nsys.exit(carry_out('irscope', lambda: print('x' * {1 << 20}) or 0))"
    assert irscope(code=code, end=">/dev/full").returncode == 74


FAULTS = {
    "an exception": ("raise ValueError('because')", "ValueError: because"),
    "a key that is missing": ("{}['because']", "KeyError: 'because'"),
    "an exit": ("sys.exit(1)", "SystemExit: 1"),
    "recursion": ("f = lambda: f()\nf()", "RecursionError: maximum recursion depth exceeded"),
    "memory": ("raise MemoryError", "MemoryError."),
    "of no kind": ("class Odd(BaseException): pass\nraise Odd", "Odd."),
}


# The same code takes up a fault wherever it is; one that is an exit and one that is an error show that imports are inside.
NIGHTLY_FAULTS = {("in an import", fault) for fault in FAULTS} - {
    ("in an import", "an exception"),
    ("in an import", "an exit"),
}


@pytest.mark.parametrize(
    ("where", "fault"),
    [
        pytest.param(*each, marks=[pytest.mark.nightly] * (each in NIGHTLY_FAULTS), id="-".join(each))
        for each in itertools.product(["in a command", "in an import"], FAULTS)
    ],
)
def test_a_fault_of_irscope_has_its_own_exit_code(fault: str, where: str, tmp_path: Path) -> None:
    raised, said = FAULTS[fault]
    name = "irscope.cli.listing" if where == "in a command" else "irscope.cli.arguments"
    body = f"import sys\n{raised}\n"
    if where == "in a command":
        body = "import sys\ndef list_runs(options):\n" + "".join(f"    {line}\n" for line in raised.split("\n"))
    code = f"import sys, types\nbody = {body!r}\n" + _REPLACED.format(name=name) + IRSCOPE
    done = irscope("list", "--store", str(tmp_path / "runs.db"), code=code)
    err = done.stderr.decode()
    assert done.returncode == 70, err
    assert err.startswith("irscope: internal error") and said in err
    assert "Traceback" not in err
    debugged = irscope("list", "--store", str(tmp_path / "runs.db"), code=code, env={"IRSCOPE_DEBUG": "1"})
    assert debugged.returncode == 70
    assert b"Traceback" in debugged.stderr


_REPLACED = """
import importlib.abc, importlib.machinery
class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        return importlib.machinery.ModuleSpec(name, self) if name == {name!r} else None
    def exec_module(self, module):
        exec(body, module.__dict__)
sys.meta_path.insert(0, Finder())
"""


def test_signals_have_the_exit_codes_of_a_shell(tmp_path: Path) -> None:
    body = "import time\ndef list_runs(options):\n    print('ready', flush=True)\n    time.sleep(60)\n"
    code = f"import sys\nbody = {body!r}\n" + _REPLACED.format(name="irscope.cli.listing") + IRSCOPE
    for number, wanted, said in ((signal.SIGINT, 130, b"irscope: interrupted\n"), (signal.SIGTERM, -15, b"")):
        running = subprocess.Popen(
            [sys.executable, "-c", code, "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "IRSCOPE_STORE": str(tmp_path / "runs.db")},
        )  # fmt: skip
        assert running.stdout is not None and running.stdout.readline() == b"ready\n"
        running.send_signal(number)
        assert running.communicate(timeout=60)[1] == said
        assert running.returncode == wanted


def test_an_error_of_a_file_names_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = str(tmp_path / "runs.db")
    assert main(["run", "x.py", "--store", store, "--write-baseline", str(tmp_path / "none" / "b.json")]) == 2
    assert "Create it first." in capsys.readouterr().err


def test_streams_are_afterwards_as_they_were(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = sys.stdout, sys.stderr
    assert carry_out("irscope", lambda: print("→") or 5) == 5
    assert sys.stdout is out and sys.stderr is err
    print("after")
    assert capsys.readouterr().out == "→\nafter\n"
