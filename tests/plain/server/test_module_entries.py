"""Entries as they are written, launch configurations, and what may run a module."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from irscope.protocol import EntryKind
from irscope_server.base.context import Document
from irscope_server.base.settings import Settings
from irscope_server.base.texts import file_key
from irscope_server.running.candidates import candidates_for
from irscope_server.running.entries import BadEntry, Entry, parse_entry
from irscope_server.running.launch import launch_of, python_launches, read_launch_file, without_comments
from irscope_server.running.plans import Planner
from irscope_server.running.results import Results

SCRIPT, MODULE, PYTEST = EntryKind.SCRIPT, EntryKind.MODULE, EntryKind.PYTEST


@pytest.mark.parametrize(
    ("text", "kind", "target", "args"),
    [
        ("train.py", SCRIPT, "/w/train.py", ()),
        ("scripts/../train.py --small 'a b'", SCRIPT, "/w/train.py", ("--small", "a b")),
        ("/elsewhere/train.py", SCRIPT, "/elsewhere/train.py", ()),
        ("python train.py", SCRIPT, "/w/train.py", ()),
        ("-m pkg.train -n 3", MODULE, "pkg.train", ("-n", "3")),
        ("python -m pkg", MODULE, "pkg", ()),
        ("pytest tests/test_x.py::test_y", PYTEST, "tests/test_x.py::test_y", ()),
        ("pytest -x tests/test_x.py", PYTEST, "tests/test_x.py", ("-x",)),
        ("python -m pytest tests/test_x.py", PYTEST, "tests/test_x.py", ()),
        ("tests/test_x.py::TestA::test_y[1]", PYTEST, "tests/test_x.py::TestA::test_y[1]", ()),
    ],
)
def test_an_entry_is_read(text: str, kind: EntryKind, target: str, args: tuple[str, ...]) -> None:
    entry = parse_entry(text, "/w")
    assert (entry.kind, entry.target, entry.args) == (kind, target, args)
    assert parse_entry(entry.title, "/w") == entry, "what is shown can be written in a setting"


@pytest.mark.parametrize("text", ["", "  ", "-m", "-m a-b", "pytest", "--flag", "'open quote"])
def test_what_is_no_entry_says_what_one_looks_like(text: str) -> None:
    with pytest.raises(BadEntry, match="name a script"):
        parse_entry(text, "/w")


def test_a_path_with_blanks(tmp_path: Path) -> None:
    (tmp_path / "my train.py").write_text("")
    assert parse_entry("my train.py", str(tmp_path)).target == str(tmp_path / "my train.py")


def test_the_file_of_a_module(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__main__.py").write_text("")
    folder = str(tmp_path)
    assert parse_entry("-m pkg", folder).file == str(tmp_path / "pkg" / "__main__.py")
    assert parse_entry("-m pkg.train", folder).file == str(tmp_path / "pkg" / "train.py")
    assert parse_entry("pytest tests/test_x.py::test_y", folder).file == str(tmp_path / "tests" / "test_x.py")


# --- launch.json ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1, // one\n "b": [1, 2, ], /* two\n lines */ }', {"a": 1, "b": [1, 2]}),
        (
            '{"a": "// no comment", "b": "/* none */", "c": "\\"//", }',
            {"a": "// no comment", "b": "/* none */", "c": '"//'},
        ),
        ('{"a": ",]", "b": ["}",] /* x */ , }', {"a": ",]", "b": ["}"]}),
        ('{"a": 1 /* , */ , // ,\n}', {"a": 1}),
        ("[1 /* never closed", None),
        ('{"a": "b\\\\"} // end', {"a": "b\\"}),
        ("[1,\n\n,2]", None),
    ],
)
def test_json_with_comments(text: str, value: Any) -> None:
    plain = without_comments(text)
    if value is None:
        with pytest.raises(ValueError):
            json.loads(plain)
    else:
        assert json.loads(plain) == value


def launch(tmp_path: Path, **configuration: Any) -> Any:
    given = {"name": "Train", "type": "debugpy", "request": "launch", **configuration}
    launches, complaints = python_launches([given], str(tmp_path / "src" / "lib.py"), str(tmp_path))
    return launches[0] if launches else complaints


def test_a_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", "42")
    (tmp_path / "dev.env").write_text("# comment\nA=1\nexport B = \"two words\" \nnonsense\nC='x'\nD=from file\n")
    found = launch(
        tmp_path,
        program="${workspaceFolder}/train.py",
        args=["--out", "${fileDirname}", "${env:MINE}"],
        env={"D": "${fileBasenameNoExtension}", "E": None},
        envFile="${workspaceFolder}/dev.env",
        cwd="${workspaceFolder}/run",
        python="${workspaceFolder}/.venv/bin/python",
    )
    assert found.entry == Entry(SCRIPT, str(tmp_path / "train.py"), (), str(tmp_path)) and not found.any_file
    assert found.args == ("--out", str(tmp_path / "src"), "42")
    assert found.env == {"A": "1", "B": "two words", "C": "x", "D": "lib"}
    assert found.cwd == str(tmp_path / "run") and found.python == str(tmp_path / ".venv/bin/python")


def test_arguments_as_one_text_and_the_debuggers_own_folder(tmp_path: Path) -> None:
    found = launch(tmp_path, module="pkg.train", args="--name 'a b'", python="${command:python.interpreterPath}")
    assert found.entry == Entry(MODULE, "pkg.train", (), str(tmp_path)) and found.args == ("--name", "a b")
    assert found.cwd == str(tmp_path) and found.python == ""
    tests = launch(tmp_path, module="pytest", args=["-x", "tests/test_x.py::test_y"])
    assert tests.entry == Entry(PYTEST, "tests/test_x.py::test_y", (), str(tmp_path)) and tests.args == ("-x",)


def test_a_platform_overrides(tmp_path: Path) -> None:
    platform = {"win32": "windows", "darwin": "osx"}.get(sys.platform, "linux")
    assert launch(tmp_path, program="a.py", **{platform: {"program": "b.py"}}).entry.name == "b.py"


def test_what_only_the_editor_can_answer_is_named(tmp_path: Path) -> None:
    (complaint,) = launch(tmp_path, program="train.py", args=["${input:size}"])
    assert "'Train' is ignored" in complaint and "${input:size}" in complaint


@pytest.mark.parametrize("other", [{"type": "node"}, {"request": "attach"}])
def test_other_configurations_do_not_count(tmp_path: Path, other: dict[str, str]) -> None:
    assert launch(tmp_path, program="train.py", **other) == []


def test_the_configuration_of_an_entry(tmp_path: Path) -> None:
    folder, script = str(tmp_path), str(tmp_path / "train.py")
    given = [
        {"name": name, "type": "python", "program": program}
        for name, program in (("open file", "${file}"), ("other", "other.py"), ("exact", "train.py"))
    ]
    launches, _ = python_launches(given, script, folder)
    entry = Entry(SCRIPT, script, ("--own",), folder)
    found = launch_of(launches, entry)
    assert found is not None and found.name == "exact", "the program itself goes before whatever is open"
    found = launch_of(launches[:2], entry)
    assert found is not None and found.name == "open file"
    assert launch_of(launches, Entry(MODULE, "train", (), folder)) is None


def test_a_file_that_is_broken_says_so(tmp_path: Path) -> None:
    assert read_launch_file(str(tmp_path)) == ([], "")
    (tmp_path / ".vscode").mkdir()
    (tmp_path / ".vscode" / "launch.json").write_text("{ not json")
    configurations, problem = read_launch_file(str(tmp_path))
    assert configurations == [] and "launch.json cannot be read" in problem
    (tmp_path / ".vscode" / "launch.json").write_text('{"configurations": [1, {"name": "x"}]}')
    assert read_launch_file(str(tmp_path)) == ([{"name": "x"}], "")


# --- candidates -------------------------------------------------------------------------------------------------------

LIBRARY = "import torch\n\n@torch.compile\ndef step(x):\n    return x.sin()\n"


def project(tmp_path: Path, **files: str) -> Path:
    for name, text in {
        "src/pkg/__init__.py": "",
        "src/pkg/lib.py": LIBRARY,
        "src/pkg/model.py": "from .lib import step\n\ndef model(x):\n    return step(x)\n",
        "src/pkg/__main__.py": "from pkg.model import model\nmodel(3)\n",
        "train.py": "import torch\nfrom pkg.lib import step\nstep(torch.ones(3))\n",
        "far.py": "from pkg import model\nmodel.model(3)\n",
        "apart.py": "import torch\ntorch.compile(lambda x: x)(torch.ones(2))\n",
        "helper.py": "import pkg.lib\n",
        "tests/test_lib.py": "import pkg.lib\n\ndef test_it():\n    pkg.lib.step(3)\n",
        ".venv/pyvenv.cfg": "",
        ".venv/uses.py": "import pkg.lib\npkg.lib.step(3)\n",
        "broken.py": "import pkg.lib\n(",
        **files,
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_candidates_are_what_imports_the_module_near_ones_first(tmp_path: Path) -> None:
    folder = project(tmp_path)
    launches, _ = python_launches(
        [
            {"name": "Small", "type": "python", "program": "far.py"},
            {"name": "Apart", "type": "python", "program": "apart.py"},
        ],
        "",
        str(folder),
    )
    found = candidates_for(str(folder / "src/pkg/lib.py"), str(folder), launches)
    assert [one.entry for one in found] == [
        "train.py",
        f"pytest {os.path.join('tests', 'test_lib.py')}",
        "far.py",
        "-m pkg",
        "apart.py",
    ]
    assert (
        found[0].detail == "Script; imports this module"
        and found[2].detail == "Script; uses this module through another"
    )
    assert found[-1].detail == "Launch configuration Apart"


def test_candidates_see_what_is_not_saved_yet(tmp_path: Path) -> None:
    folder = project(tmp_path)
    buffers = {file_key(str(folder / "apart.py")): "import pkg.lib\npkg.lib.step(3)\n"}
    found = candidates_for(str(folder / "src/pkg/lib.py"), str(folder), [], buffers)
    assert "apart.py" in [one.entry for one in found]


def test_a_test_file_is_its_own_first_candidate(tmp_path: Path) -> None:
    folder = project(tmp_path)
    found = candidates_for(str(folder / "tests/test_lib.py"), str(folder), [])
    assert [one.entry for one in found] == [f"pytest {os.path.join('tests', 'test_lib.py')}"]


def test_of_two_modules_with_one_name_the_one_beside_is_meant(tmp_path: Path) -> None:
    folder = project(
        tmp_path,
        **{
            "a/utils.py": "def f(): ...\n",
            "b/utils.py": "def f(): ...\n",
            "b/go.py": "import utils\nutils.f()\n",
        },
    )
    assert [one.entry for one in candidates_for(str(folder / "b/utils.py"), str(folder), [])] == ["b/go.py"]
    assert candidates_for(str(folder / "a/utils.py"), str(folder), []) == ()


@pytest.mark.parametrize(
    ("place", "runs"), [("site-packages/pkg/activations.py", False), ("train.py", True)], ids=["installed", "own"]
)
def test_an_installed_file_is_no_script_of_its_own(place: str, runs: bool, tmp_path: Path) -> None:
    path, text = str(tmp_path / place), "import torch\nACT = torch.compile(torch.nn.GELU())\nACT(torch.ones(2))\n"

    async def none(key: object) -> list[str]:
        return []

    archive = SimpleNamespace(scripts_touching=none)
    context: Any = SimpleNamespace(folder_of=lambda _: str(tmp_path), trusted=True, archive=archive)
    planner = Planner(context, Results())
    document = Document(f"file://{path}", path)
    plan = asyncio.run(planner.plan(document, text, Settings()))
    assert (plan is not None) is runs
