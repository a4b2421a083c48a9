"""Scratch copies of the checkout in which pytest runs, each with an environment of its own that imports the copy."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "node_modules", "out", "__pycache__", ".*_cache", "dist", "bundled")
LINKED = ("node_modules", "extension/dist", "extension/bundled")
ASK = "import sysconfig; print(*{sysconfig.get_path(name) for name in ('purelib', 'platlib')}, sep='\\n')"
# A mutant may send a signal to any process that it can see.
ALONE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]


class Copy:
    """One scratch copy.

    python: the interpreter that has torch and the test tools
    """

    def __init__(self, folder: Path, python: str) -> None:
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(ROOT, folder, ignore=LEFT_OUT, symlinks=True)
        for name in LINKED:
            if (ROOT / name).exists():
                (folder / name).symlink_to((ROOT / name).resolve())
        self.python = make_environment(folder, python)
        self._report = folder / "report.json"
        self.data = folder / "lines"
        self._settings = folder / "lines.cfg"
        include = "".join(f"\n    {folder}/{package}/*" for package in ("compiler/irscope", "server/irscope_server"))
        self._settings.write_text(
            f"[run]\ndata_file = {self.data}/data\nparallel = true\nsigterm = true\npatch = _exit, fork\n"
            f"disable_warnings = no-data-collected\ninclude ={include}\n"
        )

    def run(
        self, tests: Sequence[str], options: Sequence[str], limit: float, lines: bool = False
    ) -> dict[str, list[object]] | None:
        """How each test ended and its seconds, by node ID; None where all took longer than the limit or pytest died."""
        self._report.unlink(missing_ok=True)
        named = self.folder / "tests.txt"
        named.write_text("\n".join(tests), encoding="utf-8")
        environment = {
            **os.environ,
            "MUTATION_REPORT": str(self._report),
            "IRSCOPE_TEST_KERNELS": str(self.folder.parent / "kernels"),
            "PATH": os.pathsep.join([str(Path(self.python).parent), os.environ.get("PATH", "")]),
        }
        for name in ("VIRTUAL_ENV", "PYTHONPATH"):  # make_environment has the folders of the latter
            environment.pop(name, None)
        if lines:
            shutil.rmtree(self.data, ignore_errors=True)
            self.data.mkdir()
            environment |= {"COVERAGE_PROCESS_START": str(self._settings), "COVERAGE_CORE": "ctrace"}
        temporary = self.folder / "temporary"
        command = [
            *(ALONE if can_be_alone() else []), self.python, "-m", "pytest", "-q", "-p", "mutation_plugin",
            "-p", "no:cacheprovider", f"--basetemp={temporary}", *options, f"@{named}",
        ]  # fmt: skip
        process = subprocess.Popen(
            command, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
            stdout=(self.folder / "printed.txt").open("w"), stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, 9)
                process.wait()
            shutil.rmtree(temporary, ignore_errors=True)
        return json.loads(self._report.read_text(encoding="utf-8")) if self._report.exists() else None

    def run_mocha(self, files: Sequence[str], limit: float) -> bool:
        """Whether tests that run in Node pass."""
        command = ["node", "node_modules/mocha/bin/mocha.js", "--bail", *files]
        try:
            done = subprocess.run(command, cwd=self.folder, capture_output=True, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

    def printed(self) -> str:
        """The end of what pytest printed last."""
        return (self.folder / "printed.txt").read_text(encoding="utf-8", errors="replace")[-800:]

    def write(self, file: str, text: str) -> None:
        """Changes a source file, and forgets its bytecode, which may have the same size and second."""
        path = self.folder / file
        path.write_text(text, encoding="utf-8")
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            compiled.unlink()


def make_environment(folder: Path, python: str) -> str:
    """An environment below a copy that sees the packages of an interpreter, and irscope from the copy; its Python."""
    environment = folder / ".venv"
    subprocess.run([python, "-m", "venv", "--without-pip", "--system-site-packages", str(environment)], check=True)
    own = str(environment / "bin" / "python")
    beneath = subprocess.run([python, "-c", ASK], capture_output=True, text=True, check=True).stdout.split()
    packages = Path(subprocess.run([own, "-c", ASK], capture_output=True, text=True, check=True).stdout.split()[0])
    start = "import os; os.environ.get('COVERAGE_PROCESS_START') and __import__('coverage').process_startup()"
    given = [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    paths = [str(folder / "compiler"), str(folder / "server"), *given, *beneath, start]
    (packages / "irscope_copy.pth").write_text("\n".join(paths))
    shutil.copy(Path(__file__).with_name("mutation_plugin.py"), packages)
    toml: Any = importlib.import_module("tomllib")  # of Python 3.11
    project = toml.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    metadata = packages / f"irscope-{project['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: irscope\nVersion: {project['version']}\n")
    points = {"console_scripts": project["scripts"], **project["entry-points"]}
    (metadata / "entry_points.txt").write_text(
        "".join(
            f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in names.items())
            for group, names in points.items()
        )
    )
    for name, target in project["scripts"].items():
        module, function = target.split(":")
        script = environment / "bin" / name
        script.write_text(f"#!{own}\nimport sys\nfrom {module} import {function}\nsys.exit({function}())\n")
        script.chmod(0o755)
    for name in ("triton", "share"):
        beside = Path(python).parent.parent / name
        if (
            beside.is_dir()
            and not (environment / name).exists()
            and (Path(python).parent.parent / "pyvenv.cfg").exists()
        ):
            (environment / name).symlink_to(beside.resolve())
    return own


def can_be_alone() -> bool:
    """Whether tests can run where they see no other processes."""
    try:
        return subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False
