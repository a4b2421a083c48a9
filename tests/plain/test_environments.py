"""``irscope env create``: what is installed, what is said before, and stubs for libraries that nothing uses."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from irscope.driver import environments
from irscope.driver.availability import Status, availability_of
from irscope.driver.driver import RunSpec, execute
from irscope.driver.environments import Environment, default_folder, interpreter_of, torch_needs
from irscope.driver.stub_libraries import add_stubs, needed_libraries, stub_sources
from irscope.pipelines.registry import pipeline_named
from irscope.protocol import Lane, OutcomeKind
from irscope.store.store import Store
from support import run_cli, write


def test_the_packages_are_those_that_the_pipeline_names(tmp_path: Path) -> None:
    made = Environment(pipeline_named("onnx"), tmp_path, sys.executable)
    assert made.packages == tuple(package.to_install for package in pipeline_named("onnx").needs)
    assert Environment(pipeline_named("xla"), tmp_path, sys.executable).packages[0] == "torch==2.9.0"


def test_an_environment_is_made_only_when_it_was_finished_with_the_same_packages(tmp_path: Path) -> None:
    onnx = Environment(pipeline_named("onnx"), tmp_path, sys.executable)
    assert not onnx.is_made
    onnx.python.parent.mkdir()
    onnx.python.touch()
    assert not onnx.is_made
    onnx.done()
    assert onnx.is_made
    assert not Environment(pipeline_named("tvm"), tmp_path, sys.executable).is_made
    assert not Environment(pipeline_named("onnx"), tmp_path, "/other/python").is_made


def test_a_pipeline_runs_in_the_environment_that_was_made_of_its_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IRSCOPE_STORE", str(tmp_path / "runs.db"))
    onnx, inductor = pipeline_named("onnx"), pipeline_named("inductor")
    assert interpreter_of(onnx, sys.executable) == sys.executable, "there is none yet"
    made = Environment(onnx, default_folder(onnx), sys.executable)
    assert made.folder == tmp_path / "environments" / "onnx"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", made.folder], check=True)
    made.done()
    assert interpreter_of(onnx, sys.executable) == str(made.python)
    assert interpreter_of(inductor, sys.executable) == sys.executable
    assert interpreter_of(onnx, "/other/python") == "/other/python"

    found = availability_of([onnx, inductor], sys.executable, str(tmp_path / "trials.json"), with_trials=False)
    assert [one.python for one in found] == [str(made.python), sys.executable]
    assert (found[0].status, found[1].status) == (Status.MISSING, Status.UNTRIED), (
        "an empty environment has no packages"
    )

    def said_by(pipeline: str) -> str:
        """What a script prints, or why it cannot run: the empty environment has no torch."""
        spec = RunSpec(str(script), lane=Lane.FAST, pipeline=pipeline)
        printed: list[str] = []
        _, outcome = execute(spec, store, on_output=lambda stream, text: printed.append(text))
        return "".join(printed) + outcome.message

    script = write(tmp_path, "import sys\nprint(sys.prefix)\n")
    with Store(str(tmp_path / "runs.db")) as store:
        assert str(made.folder) in said_by("onnx")
        assert str(made.folder) not in said_by("inductor")


def test_what_is_linked_into_the_interpreters_packages_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ``pip install -e`` links the user's own project; what the environment has itself comes first."""
    monkeypatch.setattr(environments, "_pip", lambda python, *packages: None)
    for name in ("base", "made"):
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / name], check=True)
    base, made = (next((tmp_path / name).glob("lib/python*/site-packages")) for name in ("base", "made"))
    project = tmp_path / "it's a project"
    project.mkdir()
    for folder, name in ((project, "linked"), (base, "inside"), (base, "both"), (made, "both")):
        (folder / f"{name}.py").write_text(f"where = {str(folder)!r}\n")
    (base / "__editable__.project.pth").write_text(f"{project}\n")
    environment = Environment(pipeline_named("onnx"), tmp_path / "made", str(tmp_path / "base" / "bin" / "python"))
    environments.make(environment, lambda step: None)
    program = "import linked, inside, both; print(linked.where, inside.where, both.where, sep='\\n')"
    done = subprocess.run([environment.python, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [str(project), str(base), str(made)], done.stderr


def test_a_package_of_torch_comes_without_what_gpus_need() -> None:
    told = [
        "filelock",
        "sympy>=1.13.3",
        'nvidia-cudnn-cu12==9.10.2.21; platform_system == "Linux"',
        'triton==3.5.0; platform_system == "Linux"',
        'optree>=0.13.0; extra == "optree"',
    ]
    assert torch_needs(told) == ["filelock", "sympy>=1.13.3"]


def test_nothing_is_installed_without_a_yes(tmp_path: Path) -> None:
    done = run_cli("env", "create", "xla", "--folder", tmp_path / "made")
    assert done.returncode == 2
    assert "torch==2.9.0, torch_xla==2.9.0" in done.stderr
    assert "about 1000 MB" in done.stderr
    assert "Add --yes" in done.stderr
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("name", "says"), [("export", "needs only torch"), ("neuron", "cannot run"), ("no", "Unknown")]
)
def test_a_pipeline_without_an_environment_is_refused(name: str, says: str, tmp_path: Path) -> None:
    done = run_cli("env", "create", name, "--yes", "--folder", tmp_path / "made")
    assert done.returncode == 2
    assert says in done.stderr
    assert not (tmp_path / "made").exists()


# --- stubs ------------------------------------------------------------------------------------------------------------


def test_needed_libraries_are_read() -> None:
    text = "Dynamic Section:\n  NEEDED               libcudart.so.12\n  NEEDED               libc.so.6\n  SONAME    libtorch.so\n"
    assert needed_libraries(text) == ["libcudart.so.12", "libc.so.6"]


def test_functions_are_in_the_library_of_their_version() -> None:
    names = ["libcudart.so.12", "libnccl.so.2"]
    one, other = stub_sources(
        names, ["cudaMalloc@libcudart.so.12", "ncclSend", "_ZN3c10E", "cudaGetErrorString@libcudart.so.12"]
    )
    assert one == (
        "libcudart.so.12",
        "int cudaMalloc(void) { return 100; }\nint ncclSend(void) { return 100; }\n"
        'const char *cudaGetErrorString(void) { return "no CUDA"; }\n',
        "libcudart.so.12 { global: cudaMalloc; cudaGetErrorString; };",
    )
    assert other == ("libnccl.so.2", "\n", "")


@pytest.mark.skipif(
    sys.platform != "linux" or not all(map(shutil.which, ("cc", "nm", "objdump"))), reason="needs a C compiler"
)
def test_a_library_that_needs_a_missing_one_can_be_loaded(tmp_path: Path) -> None:
    def compiled(name: str, source: str, *options: str) -> None:
        (tmp_path / "source.c").write_text(source)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", name, "source.c", *options], cwd=tmp_path, check=True)

    compiled("libcudart.so.12", "int cudaMalloc(void) { return 7; }", "-Wl,-soname,libcudart.so.12")
    compiled(
        "libuser.so",
        "int cudaMalloc(void); int ask(void) { return cudaMalloc(); }",
        "libcudart.so.12",
        "-Wl,-rpath,$ORIGIN",
    )
    (tmp_path / "libcudart.so.12").unlink()
    with pytest.raises(OSError):
        ctypes.CDLL(str(tmp_path / "libuser.so"))
    assert add_stubs(tmp_path) == ["libcudart.so.12"]
    assert ctypes.CDLL(str(tmp_path / "libuser.so")).ask() == 100
    assert add_stubs(tmp_path) == []


def test_a_run_without_the_packages_names_the_command(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("print('never')\n")
    done = run_cli("run", script, "--pipeline", "xla", "--store", tmp_path / "runs.db")
    assert done.returncode == 3
    assert "Make an environment with torch==2.9.0 for it (irscope env create xla)" in done.stdout + done.stderr
    assert "never" not in done.stdout


def test_a_pipeline_with_another_pytorch_is_not_installed_beside_the_users(tmp_path: Path) -> None:
    [found] = availability_of([pipeline_named("xla")], sys.executable, str(tmp_path / "trials.json"), with_trials=False)
    assert (found.status, found.install) == (Status.MISSING, "irscope env create xla")
    assert "torch==2.9.0 is needed" in found.why


@pytest.mark.parametrize("name", ["lacking", "\ud800"])
def test_a_pipeline_that_nobody_knows_is_told(tmp_path: Path, name: str) -> None:
    script = write(tmp_path, "print('ran')\n")
    with Store(str(tmp_path / "runs.db")) as store:
        run, outcome = execute(RunSpec(str(script), lane=Lane.DEEP, pipeline=name), store)
        assert outcome.kind is OutcomeKind.ENVIRONMENT_ERROR
        assert outcome.message.startswith(f"Unknown pipeline: {name!r}. Known: ")
        assert store.report(run).outcome == outcome
