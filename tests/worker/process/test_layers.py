"""Layers: a run whose imports of installed packages were done ahead sees what a fresh process would see."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from irscope.driver.driver import RunSpec, execute
from irscope.protocol import EntryKind, Lane, Outcome, OutcomeKind, Report
from irscope.store.store import Store
from irscope.system.processes import proportional_bytes
from irscope.worker.client import LayerNote, Worker, WorkerState, can_fork, wait_for
from support import Instant, alive, at_rest, children_but_spares, late, run_plain, write

pytestmark = pytest.mark.skipif(not can_fork(), reason="forking with torch is not safe on this system")

# An installed package that does what packages do while they are imported, and one that imports a part when it is asked
# for, as transformers does.
PACKAGES = {
    "lib/__init__.py": """
        import atexit, logging, os, sys, warnings
        import torch

        SEEN = os.environ.get("LIB_LEVEL", "none")
        os.environ.setdefault("LIB_SET", "by lib")
        warnings.filterwarnings("ignore", message="quiet")
        logging.getLogger("lib").addHandler(logging.NullHandler())
        atexit.register(lambda: print("lib at exit", flush=True))

        def scaled(x):
            print("in lib")
            return x * 2
    """,
    "lib/part.py": "WHAT = 'part'",
    "lazy/__init__.py": """
        import importlib, sys, types

        class Lazy(types.ModuleType):
            def __getattr__(self, name):
                if name != "Model":
                    raise AttributeError(name)
                return importlib.import_module("lazy.models").Model

        sys.modules[__name__].__class__ = Lazy
    """,
    "lazy/models.py": "class Model:\n    pass\n",
    "other.py": "VALUE = 1\n",
}

SCRIPT = """
    import os
    import sys

    os.environ["LIB_LEVEL"] = "high"
    import torch
    import lib
    from lib import part as the_part
    try:
        import not_there
    except ImportError:
        not_there = None

    @torch.compile(backend="eager")
    def f(x):
        return lib.scaled(x) + 1

    if __name__ == "__main__":
        import logging, warnings
        print(lib.SEEN, the_part.WHAT, not_there, os.environ["LIB_LEVEL"], os.environ["LIB_SET"])
        print([filter for filter in warnings.filters if "quiet" in str(filter)], logging.getLogger("lib").handlers)
        print(sys.argv, __file__, __name__, sys.path[0], os.getcwd(), sorted(globals()))
        print("lazy" in sys.modules, sys.modules["__main__"].lib is lib, open(os.devnull).fileno())
        print(f(torch.ones(3)), f(torch.ones(4)).shape)
"""


@dataclass
class Desk:
    """A worker with packages, and scripts that run in it."""

    worker: Worker
    env: dict[str, str]
    packages: Path
    scripts: Path
    printed: list[tuple[str, str]] = field(default_factory=list)

    def run(self, script: Path, worker: bool = True, entry: EntryKind = EntryKind.SCRIPT) -> tuple[Outcome, Report]:
        self.printed.clear()
        spec = RunSpec(str(script), lane=Lane.FAST, cwd=str(script.parent), env=self.env, entry=entry)
        with Store(str(self.scripts / "runs.db")) as store:
            run, outcome = execute(
                spec,
                store,
                worker=self.worker if worker else None,
                on_output=lambda stream, text: self.printed.append((stream, text)),
            )
            return outcome, store.report(run)

    @property
    def output(self) -> str:
        return "".join(text for _, text in self.printed)

    @property
    def streams(self) -> dict[str, str]:
        """Each whole and in order; of what goes to one and then to the other either may be read first."""
        return {name: "".join(text for stream, text in self.printed if stream == name) for name in ("stdout", "stderr")}

    @property
    def pid(self) -> int:
        assert self.worker._process is not None
        return self.worker._process.pid

    def next_note(self, *states: str) -> LayerNote:
        """What is said of a layer next, in one of these states."""
        begun = Instant()
        while not late(begun, 30.0):
            found = [note for note in self.worker.listen() if note.state in states]
            if found:
                return found[-1]
            time.sleep(0.02)
        raise AssertionError(f"nothing was said of a layer that is {' or '.join(states)}")

    def layered(self, script: Path) -> LayerNote:
        """Runs a script so that it has a layer."""
        outcome, _ = self.run(script)
        assert outcome.kind is OutcomeKind.COMPLETED, self.output
        return self.next_note("ready", "refused")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("layers")
    packages = folder / "site-packages"
    for name, text in PACKAGES.items():
        write(packages, text, name)
    env = {"PYTHONPATH": str(packages)}
    worker = Worker(sys.executable, env)
    assert wait_for(worker, 120) is WorkerState.READY, worker.reason
    yield Desk(worker, env, packages, folder)
    worker.stop()


@pytest.fixture
def desk(shared: Desk, tmp_path: Path) -> Desk:
    shared.worker.listen()
    return Desk(shared.worker, shared.env, shared.packages, tmp_path)


def facts(report: Report) -> object:
    return (
        [(f.kind, f.code, f.range, f.count, f.compiles) for f in report.findings],
        [(c.id, c.function, c.outcome, c.graph_ops, [s.id for s in c.stages]) for c in report.compiles],
        report.capture_gaps,
    )


def test_a_script_in_a_layer_sees_what_a_fresh_process_sees(desk: Desk) -> None:
    script = write(desk.scripts, SCRIPT)
    outcome, fresh = desk.run(script, worker=False)
    expected = desk.output
    assert outcome.kind is OutcomeKind.COMPLETED and "high part None high by lib" in expected
    assert desk.layered(script).state == "ready"
    assert desk.output == expected, "the first run, in the worker itself"
    _, layered = desk.run(script)
    assert desk.output == expected
    assert facts(layered) == facts(fresh) and {finding.code for finding in fresh.findings} >= {"GB0059"}
    assert expected == run_plain(script, env=desk.env, cwd=desk.scripts).stdout


PARENT = "import os, sys, lib\nprint(os.getppid(), 'lib' in sys.modules)\n"


def test_it_really_is_a_fork_of_a_layer_and_only_with_its_imports(desk: Desk) -> None:
    script = write(desk.scripts, PARENT)
    layer = desk.layered(script)
    assert desk.output.startswith(f"{desk.pid} ")
    desk.run(script)
    assert desk.output.startswith(f"{layer.pid} ")
    desk.run(write(desk.scripts, "import os, sys\nprint(os.getppid(), 'lib' in sys.modules)\n"))
    assert desk.output == f"{desk.pid} False\n"
    assert layer in desk.worker.layers() and desk.worker.memory() > proportional_bytes([desk.pid])
    desk.worker.layered = False
    desk.run(script)
    desk.worker.layered = True
    assert desk.output.startswith(f"{desk.pid} ")


def test_a_part_that_a_package_imports_when_asked_is_in_the_layer(desk: Desk) -> None:
    text = "import os, sys\nimport lazy as L\nloaded = 'lazy.models' in sys.modules\nprint(os.getppid(), loaded)\n"
    script = write(desk.scripts, text + "model = L.Model()\nprint(type(model))\n")
    layer = desk.layered(script)
    assert desk.output.startswith(f"{desk.pid} False")
    desk.run(script)
    assert desk.output.startswith(f"{layer.pid} "), "print(os.getppid()) ends the head before L.Model"
    script = write(desk.scripts, "import os, sys\nimport lazy as L\nmodel = L.Model()\n" + text)
    layer = desk.layered(script)
    desk.run(script)
    assert desk.output == f"{layer.pid} True\n" and "lazy.Model" in layer.layer


# What a package does while it is imported → why the script must do the import itself.
UNSAFE = {
    "prints": ("print('hello')", "prints"),
    "warns": ("import warnings; warnings.warn('careful')", "prints"),
    "runs_operations": ("import torch; X = torch.ones(3) + 1", "runs operations"),
    "starts_a_thread": ("import threading, time; threading.Thread(target=time.sleep, args=(9,), daemon=True).start()", "starts threads"),
    "starts_a_process": ("import subprocess; subprocess.run(['true'])", "starts a process"),
    "forks": ("import os\nif os.fork() == 0: os._exit(0)\nos.wait()", "starts a process"),
    "seeds_python": ("import random; random.seed(3)", "seeds random numbers"),
    "seeds_torch": ("import torch; torch.manual_seed(3)", "seeds random numbers"),
    "changes_the_folder": ("import os; os.chdir('/')", "changes the working folder"),
    "changes_the_path": ("import sys; sys.path.append('/nowhere')", "changes the search path"),
    "keeps_a_file_open": ("F = open(__file__)", "opens descriptors"),
    "writes_a_file": ("open(__file__ + '.log', 'a').close()", "writes"),
    "reads_the_arguments": ("import sys; NAME = sys.argv[0]", "reads the script's arguments"),
    "compiles": ("import torch; F = torch.compile(lambda x: x + 1)", "compiles functions"),
    "imports_the_users_files": ("import users", "the user's own files"),
    "fails": ("try:\n    undefined_name\nexcept NameError:\n    raise ImportError('not for you')", "fails"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNSAFE)
def test_unsafe_imports_are_left_to_the_script(desk: Desk, name: str) -> None:
    source, says = UNSAFE[name]
    write(desk.packages, source, f"unsafe_{name}.py")
    write(desk.scripts, "VALUE = 1", "users.py")
    script = write(
        desk.scripts, f"import os\ntry:\n    import unsafe_{name}\nexcept ImportError:\n    pass\nprint(os.getppid())\n"
    )
    note = desk.layered(script)
    assert note.state == "refused" and says in note.reason
    first = desk.streams
    desk.run(script)
    assert desk.streams == first and first["stdout"].endswith(f"{desk.pid}\n")


def test_random_numbers_that_an_import_draws_matter_after_a_seed_only(desk: Desk) -> None:
    write(desk.packages, "import random\nDRAWN = random.random()\n", "drawing.py")
    text = "import random\nimport drawing\nprint(random.random())\n"
    assert desk.layered(write(desk.scripts, text)).state == "ready"
    first = [(desk.run(desk.scripts / "script.py"), desk.output)[1] for _ in range(2)]
    assert first[0] != first[1], "each run has a seed of its own"
    note = desk.layered(write(desk.scripts, text.replace("import drawing", "random.seed(3)\nimport drawing")))
    assert note.state == "refused" and "seeded before" in note.reason


def test_a_variable_that_the_script_sets_before_an_import_is_part_of_the_layer(desk: Desk) -> None:
    def script(value: str) -> Path:
        text = f"import os\nos.environ['LIB_LEVEL'] = '{value}'\nimport lib\nprint(lib.SEEN, os.getppid())\n"
        return write(desk.scripts, text)

    low = desk.layered(script("low"))
    high = desk.layered(script("high"))
    for layer, value in ((low, "low"), (high, "high")):
        desk.run(script(value))
        assert desk.output.startswith(f"{value} {layer.pid}\n")
    desk.env["LIB_LEVEL"] = "from outside"
    try:
        desk.run(write(desk.scripts, "import lib\nimport os\nprint(lib.SEEN, os.getppid())\n"))
    finally:
        del desk.env["LIB_LEVEL"]
    assert desk.output.startswith(f"from outside {desk.pid}\n")
    desk.next_note("ready")


# What stands before an import, and whether the import may still be done ahead.
HEADS = {
    "": True,
    "X = 3\n": True,
    "def g(x=1):\n    import sys\n    sys.path.insert(0, 'x')\n": True,
    "import logging\nlogger = logging.getLogger(__name__)\n": True,
    "torch.manual_seed(0)\n": True,
    "class C(torch.nn.Module):\n    n: int = 0\n    @property\n    def p(self):\n        return 1\n": True,
    "try:\n    import not_there\nexcept ImportError:\n    not_there = None\n": True,
    "import users\n": True,
    "import sys\nsys.path.insert(0, 'x')\n": False,
    "import sys\nsys.modules['other'] = sys\n": False,
    "import os\nos.chdir('.')\n": False,
    "import os\nos.environ['A'] = str(len('abc'))\n": True,
    "import os\nos.environ[str(1)] = 'a'\n": False,
    "torch.set_default_dtype(torch.float64)\n": False,
    "torch.nn.Linear = None\n": False,
    "setattr(torch, 'compile', None)\n": False,
    "def d(f):\n    torch.x = 1\n    return f\n@d\ndef g(): pass\n": False,
    "class M:\n    def __init_subclass__(cls): torch.x = 1\nclass N(M): pass\n": False,
    "import users_that_patch\n": False,
    "for i in range(3):\n    pass\n": False,
}


def test_the_head_ends_where_an_import_could_notice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from irscope.worker.head import head_of

    packages = tmp_path / "site-packages"
    write(packages, "", "apart/__init__.py")
    write(packages, "", "apart/sub.py")
    monkeypatch.setattr(sys, "path", ["", str(packages), *sys.path[1:]])
    write(tmp_path, "VALUE = 1\ndef f():\n    return VALUE\n", "users.py")
    write(tmp_path, "import torch\ntorch.relu = None\n", "users_that_patch.py")

    def read(path: str) -> str:
        return Path(path).read_text()

    wrong = []
    for text, ahead in HEADS.items():
        script = write(tmp_path, f"import torch\n{text}import apart.sub\n")
        steps = head_of(str(script), read)
        if ("import apart.sub" in [step.text for step in steps]) != (ahead and "str(len" not in text):
            wrong.append((text, steps))
    assert not wrong
    script = write(tmp_path, "import users_too, users\nimport apart.sub\n")
    write(
        tmp_path,
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import apart.x\nimport apart\n",
        "users_too.py",
    )
    assert [step.text for step in head_of(str(script), read)] == ["import apart", "import apart.sub"]


def test_a_package_that_changes_is_imported_anew(desk: Desk) -> None:
    script = write(desk.scripts, "import os\nimport other\nprint(other.VALUE, os.getppid())\n")
    layer = desk.layered(script)
    desk.run(script)
    assert desk.output == f"1 {layer.pid}\n"
    write(desk.packages, "VALUE = 2222\n", "other.py")
    desk.run(script)
    assert desk.output == f"2222 {desk.pid}\n"
    assert desk.next_note("ready").pid != layer.pid


def test_a_file_of_the_users_that_hides_a_package_is_what_is_imported(desk: Desk) -> None:
    script = write(desk.scripts, "import os\nimport lib\nprint(lib.scaled.__module__, lib.__file__, os.getppid())\n")
    assert desk.layered(script).state == "ready"
    write(desk.scripts, "def scaled(): pass\n", "lib.py")
    desk.run(script)
    assert str(desk.scripts / "lib.py") in desk.output
    (desk.scripts / "lib.py").unlink()
    write(desk.scripts, "raise SystemExit('mine')\n", "sympy.py")  # torch imports it, and so does the worker
    write(desk.scripts, "import sympy\n", "script.py")
    outcome, _ = desk.run(script)
    assert outcome.kind is OutcomeKind.SCRIPT_ERROR and "mine" in desk.output


def test_few_are_kept_and_none_is_left_behind(desk: Desk) -> None:
    for number in range(5):
        write(desk.packages, f"VALUE = {number}", f"many{number}.py")
    pids = []
    for number in range(5):
        pids.append(desk.layered(write(desk.scripts, f"import many{number}\n")).pid)
    assert [note.pid for note in desk.worker.layers()] == pids[-3:]
    until(lambda: sorted(children_but_spares(desk.pid)) == sorted(pids[-3:]), "the two oldest have ended")
    at_rest(desk.pid)
    fds = len(os.listdir(f"/proc/{desk.pid}/fd"))
    for number in range(5):
        desk.layered(write(desk.scripts, f"import many{number}\n")) if number < 2 else desk.run(
            write(desk.scripts, f"import many{number}\n")
        )
    at_rest(desk.pid)
    until(lambda: len(children_but_spares(desk.pid)) == 3, "as many as before")
    until(lambda: len(os.listdir(f"/proc/{desk.pid}/fd")) == fds, "as many descriptors as before")


@pytest.mark.parametrize("end", ["kill", pytest.param("stop", marks=pytest.mark.nightly)])
def test_layers_and_their_runs_end_with_the_worker(desk: Desk, end: str) -> None:
    worker = Worker(sys.executable, desk.env)
    assert wait_for(worker, 120) is WorkerState.READY
    own = Desk(worker, desk.env, desk.packages, desk.scripts)
    script = write(desk.scripts, "import lib\nimport os, time\nprint(os.getpid(), flush=True)\ntime.sleep(LONG)\n")
    layer = own.layered(write(desk.scripts, script.read_text().replace("LONG", "0")))
    write(desk.scripts, script.read_text().replace("sleep(0)", "sleep(1000)"))
    seen: list[int] = []

    def hear(_stream: str, text: str) -> None:
        if not seen and text.strip():
            seen.append(int(text.split()[0]))
            seen.append(int(Path(f"/proc/{seen[0]}/stat").read_text().rpartition(")")[2].split()[1]))
            os.kill(own.pid, signal.SIGKILL) if end == "kill" else worker.stop()

    with Store(str(desk.scripts / "runs.db")) as store:
        spec = RunSpec(str(script), lane=Lane.FAST, cwd=str(desk.scripts), env=desk.env)
        _, outcome = execute(spec, store, worker=worker, on_output=hear)
    assert outcome.kind is OutcomeKind.CRASHED and seen[1] == layer.pid
    until(lambda: not any(alive(pid) for pid in (*seen, own.pid)), "nothing of it is left")
    worker.stop()


def until(condition: Callable[[], bool], what: str) -> None:
    begun = Instant()
    while not condition():
        assert not late(begun, 10.0), what
        time.sleep(0.02)


def test_a_notebook_has_a_layer_as_a_script_has(desk: Desk) -> None:
    """Of the imports in its cells, up to the first that an import could notice; not that of a script with the same."""
    desk.layered(write(desk.scripts, PARENT))
    cells = (
        "%matplotlib inline\nimport os, sys\nimport lib",
        "print(os.getppid(), 'lib' in sys.modules, '__file__' in globals())",
        "x = = 1",
    )
    path = desk.scripts / "try.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": cell} for cell in cells]}))
    for _ in range(2):
        outcome, _ = desk.run(path, entry=EntryKind.NOTEBOOK)
        assert outcome.kind is OutcomeKind.SCRIPT_ERROR and "cell-3" in outcome.message
        parent, *rest = desk.output.splitlines()[0].split()
        assert rest == ["True", "False"]
        note = desk.next_note("ready", "refused") if parent == str(desk.pid) else None
        assert note is None or (note.state, note.layer) == ("ready", "import lib"), note
    assert note is None and parent != str(desk.pid), "the second one is a fork of the layer"
