"""Files that only define things: the entry that runs them, where it comes from, and what is shown without one."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from irscope.protocol import Kernel, Lane, Origin, Outcome, OutcomeKind, StageRef, to_json
from irscope.store.store import Store
from irscope.usercode.source import digest_of
from lsp_editor import Editor, StartEditor
from lsprotocol import types
from made import compile_of, finding

Play = Callable[..., Path]

LIBRARY = "import torch\n\n@torch.compile\ndef step(x):\n    print(x)\n    return x.sin()\n"
TRAIN = "import torch\nfrom lib import step  # which is under torch.compile\nstep(torch.ones(3))\n"


class Project:
    """A folder with a library module, two scripts and a test that use it."""

    def __init__(self, folder: Path, play: Play) -> None:
        self.folder = folder / "project"
        self._play = play
        self._asked = folder / "play.json.asked"
        for name, text in {
            "lib.py": LIBRARY,
            "train.py": TRAIN,
            "other.py": TRAIN,
            "pkg/__main__.py": TRAIN,
            "tests/test_lib.py": "from lib import step\n\ndef test_step():\n    step(3)\n",
        }.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text)
        self.lib = self.folder / "lib.py"

    def finds(self, **more: Any) -> dict[str, Any]:
        """A run that compiles and breaks in the library module."""
        file = str(self.lib)
        return {
            "findings": [to_json(finding(file, 5, 4, 12))],
            "compiles": [[to_json(compile_of(file, "0/0", "step", 3)), []]],
            **more,
        }

    def play(self, *acts: dict[str, Any]) -> None:
        self._play(*(acts or (self.finds(),)))

    @property
    def asked(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._asked.read_text().splitlines()] if self._asked.exists() else []


@pytest.fixture
def project(tmp_path: Path, play: Play) -> Project:
    project = Project(tmp_path, play)
    project.play()
    return project


@pytest.fixture
def start(start_editor: StartEditor, project: Project) -> Callable[..., Any]:
    async def start(**run: Any) -> Editor:
        return await start_editor(playing=True, folder=project.folder, options={"run": run})

    return start


async def test_a_library_module_without_an_entry_is_not_run_and_says_what_to_do(start: Any, project: Project) -> None:
    editor = await start()
    uri = editor.open(project.lib)
    await editor.until(lambda: editor.file_state(uri) is not None)
    editor.save(uri)
    state = editor.file_state(uri)
    assert state.state == "noEntry" and "lib.py only contains definitions" in state.text
    assert await editor.lenses(uri) == [(2, "choose the script that runs this module")]
    answer = await editor.request("irscope/run", uri=uri, lane="deep")
    assert answer.outcome == "no-entry" and "Choose Entry Script for This File" in answer.message
    answer = await editor.request("irscope/kernelsAt", uri=uri, line=5, run=True)
    assert answer.run is None and "only contains definitions" in answer.reason
    assert project.asked == []


async def test_a_save_runs_the_entry_and_the_findings_land_in_the_module(start: Any, project: Project) -> None:
    editor = await start(entry="train.py --small", budgetSeconds=7)
    uri = editor.open(project.lib)
    await editor.until_ended()
    await editor.until(lambda: editor.codes(uri) == ["GB0059"])
    (asked,) = project.asked
    assert (asked["entry"], asked["script"], asked["args"]) == ("script", str(project.folder / "train.py"), ["--small"])
    assert asked["cwd"] == str(project.folder) and asked["budget"]["seconds"] == 7 and asked["lane"] == "fast"
    assert asked["budget"]["steady_calls"] == 32 and asked["budget"]["output"] == 64_000_000
    assert asked["budget"]["memory"] > 0
    assert await editor.lenses(uri) == [(2, "1 graph · 1 break · 500 ms")]
    state = editor.file_state(uri)
    assert (state.state, state.entry) == ("current", "train.py --small")
    editor.change(uri, LIBRARY + "# edited\n")
    editor.save(uri)
    await editor.until_ended(2)
    assert project.asked[1]["overlays"] == [str(project.lib)], "as it is in the editor"
    assert (await editor.request("irscope/kernelsAt", uri=uri, line=5, run=True)).run is not None
    assert project.asked[2]["lane"] == "deep" and project.asked[2]["script"] == str(project.folder / "train.py")
    assert (await editor.request("irscope/stagesOf", uri=uri, run=True)).run is not None
    assert len(project.asked) == 3, "the deep run of these texts is at hand"


@pytest.mark.parametrize(
    ("entry", "kind", "script", "cwd"),
    [
        ("-m pkg", "module", "pkg", "."),
        ("pytest tests/test_lib.py::test_step", "pytest", "tests/test_lib.py::test_step", "."),
    ],
)
async def test_modules_and_tests_run_from_the_workspace_folder(
    start: Any, project: Project, entry: str, kind: str, script: str, cwd: str
) -> None:
    editor = await start(entry=[entry])
    uri = editor.open(project.lib)
    await editor.until_ended()
    await editor.until(lambda: editor.codes(uri) == ["GB0059"])
    (asked,) = project.asked
    assert (asked["entry"], asked["script"], asked["cwd"]) == (kind, script, str(project.folder))
    (item,) = (await editor.request("irscope/runs", limit=5)).runs
    assert item.script == entry
    answer = await editor.request("irscope/run", uri=item.scriptUri, lane="fast", entry=item.script)
    assert answer.outcome == "completed" and project.asked[1] == asked, "it can be run again"


async def test_the_choice_for_a_file_goes_before_everything(start: Any, project: Project) -> None:
    editor = await start(entry="other.py", entryOf={"lib.py": "train.py", "tests/*.py": "pytest tests/test_lib.py"})
    editor.open(project.lib)
    await editor.until_ended()
    editor.open(project.folder / "tests" / "test_lib.py")
    await editor.until_ended(2)
    assert [asked["script"] for asked in project.asked] == [str(project.folder / "train.py"), "tests/test_lib.py"]


async def test_of_several_entries_the_first_whose_last_run_had_to_do_with_the_file(
    start: Any, project: Project
) -> None:
    project.play({}, project.finds())
    editor = await start(entry=["other.py", "train.py"], onSave="off")
    uri = editor.open(project.lib)
    for script in ("other.py", "train.py"):
        await editor.request("irscope/run", uri=(project.folder / script).as_uri(), lane="fast")
    await editor.request("irscope/run", uri=uri, lane="fast")
    assert [Path(asked["script"]).name for asked in project.asked] == ["other.py", "train.py", "train.py"]


async def test_what_ran_it_before_runs_it_again(start: Any, project: Project) -> None:
    """Without any setting, also in a new session: the store knows."""
    editor = await start()
    editor.open(project.folder / "train.py")
    await editor.until_ended()
    again = await start()
    uri = again.open(project.lib)
    await again.until_ended()
    await again.until(lambda: again.codes(uri) == ["GB0059"])
    assert again.file_state(uri).entry == "train.py"
    assert [Path(asked["script"]).name for asked in project.asked] == ["train.py", "train.py"]


async def test_opening_a_module_whose_script_was_just_run_runs_nothing(start: Any, project: Project) -> None:
    editor = await start(entry="train.py")
    script = editor.open(project.folder / "train.py")
    await editor.until_ended()
    uri = editor.open(project.lib)
    await editor.until(lambda: editor.file_state(uri) is not None and editor.file_state(uri).state == "current")
    assert await editor.lenses(uri) == [(2, "1 graph · 1 break · 500 ms")]
    await editor.until(lambda: editor.codes(uri) == ["GB0059"])
    editor.close_document(script)
    assert await editor.lenses(uri) == [(2, "1 graph · 1 break · 500 ms")]
    await asyncio.sleep(0.2)  # longer than between two publications
    assert editor.codes(uri) == ["GB0059"] and len(project.asked) == 1, "the module still shows what the script found"


async def test_a_module_that_has_nothing_to_do_with_torch_starts_nothing(start: Any, project: Project) -> None:
    (project.folder / "plain.py").write_text("def f(x):\n    return x + 1\n")
    editor = await start(entry="train.py")
    uri = editor.open(project.folder / "plain.py")
    editor.save(uri)
    lib = editor.open(project.lib)
    await editor.until_ended()
    assert len(project.asked) == 1 and editor.file_state(lib).state == "current"
    assert editor.file_state(uri).entry == "train.py"


async def test_a_launch_configuration_gives_arguments_environment_and_folder(start: Any, project: Project) -> None:
    (project.folder / ".vscode").mkdir()
    (project.folder / ".vscode" / "launch.json").write_text(
        """{
        // as people write it
        "configurations": [
            {"name": "Train", "type": "debugpy", "request": "launch", "program": "${workspaceFolder}/train.py",
             "args": ["--from", "${workspaceFolderBasename}"], "env": {"A": "1"}, "cwd": "${workspaceFolder}/tests"},
            {"name": "Tests", "type": "debugpy", "request": "launch", "module": "pytest",
             "args": ["-x", "tests/test_lib.py"], "env": {"A": "2"},},
        ],
    }"""
    )
    editor = await start(env={"B": "3"}, onSave="off")
    uri = (project.folder / "train.py").as_uri()
    await editor.request("irscope/run", uri=uri, lane="fast")
    (asked,) = project.asked
    assert asked["args"] == ["--from", "project"] and asked["env"] == {"A": "1", "B": "3"}
    assert asked["cwd"] == str(project.folder / "tests") and asked["python"] == sys.executable
    for settings, args in (
        ({"useLaunchConfigurations": False}, []),
        ({"args": ["mine"]}, ["mine"]),
        ({"launchConfiguration": "Tests"}, ["-x"]),
    ):
        editor.client.set_configuration({"irscope": {"run": {"onSave": "off", **settings}}})
        await editor.request("irscope/run", uri=uri, lane="fast")
        assert project.asked[-1]["args"] == args and project.asked[-1]["script"] == str(project.folder / "train.py")
    lib = await editor.request("irscope/run", uri=project.lib.as_uri(), lane="fast")
    assert lib.outcome == "completed"
    assert (project.asked[-1]["entry"], project.asked[-1]["script"]) == ("pytest", "tests/test_lib.py")
    candidates = (await editor.request("irscope/entries", uri=project.lib.as_uri())).candidates
    assert [one.entry for one in candidates] == ["other.py", "-m pkg", "train.py", "pytest tests/test_lib.py"]


async def test_configurations_that_the_editor_tells(start_editor: StartEditor, project: Project) -> None:
    """VS Code knows those of the workspace file, too, so it sends them."""
    given = [{"name": "x", "type": "python", "program": "${file}", "args": ["told"]}]
    editor = await start_editor(playing=True, folder=project.folder, settings={"launch": given})
    editor.open(project.folder / "train.py")
    await editor.until_ended()
    assert project.asked[0]["args"] == ["told"]


async def test_an_entry_that_is_none_is_said_once_and_the_others_count(start: Any, project: Project) -> None:
    editor = await start(entry=["-m", "train.py"])
    uri = editor.open(project.lib)
    await editor.until_ended()
    editor.save(uri)
    await editor.until_ended(2)
    assert editor.log.count("'-m' is not an entry") == 1 and Path(project.asked[0]["script"]).name == "train.py"


async def test_nothing_of_it_runs_in_a_workspace_that_is_not_trusted(
    start_editor: StartEditor, project: Project
) -> None:
    options = {"trusted": False, "run": {"entry": "train.py"}}
    editor = await start_editor(playing=True, folder=project.folder, options=options)
    uri = editor.open(project.lib)
    editor.save(uri)
    assert (await editor.request("irscope/run", uri=uri, lane="fast")).outcome == "environment-error"
    assert (await editor.request("irscope/kernelsAt", uri=uri, line=4, run=True)).run is None
    assert project.asked == []


async def test_a_choice_in_the_settings_runs_at_once(start_editor: StartEditor, project: Project) -> None:
    editor = await start_editor(playing=True, folder=project.folder)
    uri = editor.open(project.lib)
    await editor.until(lambda: editor.file_state(uri) is not None)
    editor.client.set_configuration({"irscope": {"run": {"entryOf": {"lib.py": "train.py"}}}})
    editor.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings=None))
    await editor.until_ended()
    await editor.until(lambda: editor.codes(uri) == ["GB0059"])
    assert len(project.asked) == 1


async def test_a_script_that_compiles_in_a_module_only_runs_once_that_is_known(start: Any, project: Project) -> None:
    (project.folder / "train.py").write_text("import torch\nfrom lib import step\nstep(torch.ones(3))\n")
    editor = await start()
    uri = editor.open(project.folder / "train.py")
    editor.save(uri)
    await editor.lenses(uri)
    assert (await editor.request("irscope/run", uri=uri, lane="fast")).outcome == "completed"
    assert len(project.asked) == 1
    editor.save(uri)
    await editor.until_ended(2)
    assert len(project.asked) == 2


@pytest.mark.parametrize("known", [True, False], ids=["its text", "not its text"])
async def test_a_stored_run_tells_the_kernels_of_a_module_that_was_inlined(
    known: bool, start: Any, project: Project, store_path: str
) -> None:
    """As a file of an installed package: nothing of it is compiled by itself, but kernels come from its lines."""
    train, lib = project.folder / "train.py", project.lib
    Path(store_path).parent.mkdir()
    with Store(store_path) as store:
        run = store.create_run(str(train), [], Lane.DEEP, digest_of(TRAIN))
        store.put_compile(run, compile_of(str(train), "0/0", "<module>", 3))
        store.put_stage(run, "0/0", StageRef("0/0/kernel/k", "kernel", "cpp", 0), "void k() {}\n", 9)
        store.put_kernel(run, Kernel("k", "cpp", "0/0", "0/0/kernel/k", (Origin(str(lib), 6),)))
        store.put_source(run, str(train), TRAIN)
        if known:
            store.put_source(run, str(lib), LIBRARY)
        store.set_outcome(run, Outcome(OutcomeKind.COMPLETED, 0, "The script ran to its end.", 1.0))
    editor = await start(onSave="off")
    uri = editor.open(lib)
    for line in (5, 3):  # the line itself, and the `def` above it
        answer = await editor.request("irscope/kernelsAt", uri=uri, line=line, run=False)
        assert [kernel.name for kernel in answer.kernels] == ["k"]
        assert ("earlier version of the file" in answer.reason) != known
    if known:
        await editor.request("irscope/kernelsAt", uri=uri, line=5, run=True)
    assert project.asked == []
