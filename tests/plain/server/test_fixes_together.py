"""Fixes that were proven together, in files that may have changed since, and whose texts are hard to edit."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from irscope.fixing.texts import applied, edits_between
from irscope.protocol import Edit, OutcomeKind, Position, Range
from irscope.usercode.source import decode_source
from irscope_server.base.line_map import LineMap
from irscope_server.base.texts import Texts, file_key
from irscope_server.language.tried_fixes import fixes_together
from irscope_server.running.proofs import Combined, Proofs, Proven
from irscope_server.running.workers import Workers
from lsp_editor import edits_in, in_units, versions_in
from lsprotocol import types
from made import finding

TEXT = "a = 1\nb = 2\nc = 3\n"
TITLE = "Fix everything that is proven in the workspace"


class Workspace:
    """Files on disk, buffers of an editor, and what is proven of the files as they were first written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.buffers: dict[str, str] = {}
        self.runs: list[Combined] = []
        self.reviews = self.versions = True

    def ran(self, *names: str, text: str | bytes = TEXT) -> Combined:
        """Files that ran, each with a proof for a 4 in the place of the 2."""
        data = text.encode() if isinstance(text, str) else text
        edits, texts = {}, {}
        for name in names:
            path = self.folder / name
            path.write_bytes(data)
            before = decode_source(data)
            edits[str(path)] = edits_between(before, before.replace("2", "4"))
            texts[str(path)] = before.split("\n")
        fixed = tuple(finding(str(self.folder / names[0]), line, 0, 1, code="GB0170") for line in (2, 3))
        self.runs.append(Combined(edits, fixed, texts))
        return self.runs[-1]

    def open(self, name: str, text: str) -> None:
        """An open document; its version is the number of its lines."""
        self.buffers[file_key(str(self.folder / name))] = text

    def actions(self, at: str, encoding: str = "utf-16", run: int | None = None) -> dict[str, types.CodeAction]:
        """What is offered at the finding of a file, by title."""
        whole = {str(n): Proven({}, {"": one}) for n, one in enumerate(self.runs)}
        context: Any = SimpleNamespace(
            proofs=SimpleNamespace(of_run=whole.__getitem__, newest=lambda: list(whole.values())),
            texts=Texts(self.buffers.get),
            views=SimpleNamespace(line_map=lambda old, new: LineMap(old or (), new)),
            uri_of=lambda path: path,
            version_of=lambda path: text.count("\n") if (text := self.buffers.get(file_key(path))) else None,
            encoding=encoding,
            reviews_edits=self.reviews,
            edits_versions=self.versions,
        )
        path = str(self.folder / at)
        run = next(n for n, one in enumerate(self.runs) if path in one.edits) if run is None else run
        placed: Any = SimpleNamespace(run=str(run), finding=finding(path, 2, 0, 1, code="GB0170"))
        return {action.title: action for action in fixes_together(context, [placed])}

    def files(self, at: str) -> dict[str, list[str]]:
        """The names of the files that each action changes."""
        return {
            title: [os.path.basename(one) for one in edits_in(action)] for title, action in self.actions(at).items()
        }


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


HARD = {
    "crlf.py": b"a = 1\r\nb = 2  # \xc3\xa9\r\nc = 3\r\n",
    "bom.py": b"\xef\xbb\xbfa = 1\nb = 2\n",
    "tabs.py": b"if True:\n\ta = 1; b = 2; c = '\t'\n",
    "emoji.py": "a = '😀'; b = 2; c = '𝒳'\n".encode(),
    "feeds.py": "a = 1\n\f\n# \u2028 \x85 \x1c\nb = 2\f\nc = 3\n".encode(),
    "no_end.py": b"a = 1\nb = 2",
    "first.py": b"2",
    "latin.py": b"# coding: latin-1\na = '\xe9'; b = 2\n",
}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8", "utf-32"])
def test_hard_texts_get_their_edits_at_the_right_place(workspace: Workspace, encoding: str) -> None:
    for name, data in HARD.items():
        workspace.ran(name, text=data)
        if name != "latin.py":  # a client that opens a file keeps the ends of its lines, and not its mark
            workspace.open(name, data.decode("utf-8-sig"))
    action = workspace.actions("crlf.py", encoding)[f"{TITLE} ({2 * len(HARD)} verified)"]
    assert action.edit is not None and action.edit.change_annotations is not None
    annotation, asks = action.edit.change_annotations.values()
    assert asks.needs_confirmation and (annotation.needs_confirmation, annotation.description) == (False, None)
    found = edits_in(action)
    assert {os.path.basename(path) for path in found} == set(HARD)
    for path, edits in found.items():
        text = workspace.buffers.get(file_key(path)) or decode_source(Path(path).read_bytes())
        assert versions_in(action)[path] == (text.count("\n") if file_key(path) in workspace.buffers else None)
        if encoding == "utf-16":
            made = in_units(text, edits)
            assert made.replace("\r\n", "\n") == text.replace("\r\n", "\n").replace("2", "4"), path


def test_what_does_not_fit_any_more_is_left_out_and_told(workspace: Workspace) -> None:
    for name in ("here.py", "elsewhere.py", "fixed_line.py", "on_disk.py", "gone.py", "locked.py", "moved.py"):
        workspace.ran(name)
    workspace.open("elsewhere.py", TEXT.replace("c = 3", "c = 5"))
    workspace.open("fixed_line.py", TEXT.replace("b = 2", "b = 2 + 2"))
    workspace.open("moved.py", f"# 😀\n{TEXT}")
    (workspace.folder / "on_disk.py").write_text("# rewritten\nb = 22\n")
    (workspace.folder / "gone.py").unlink()
    (workspace.folder / "locked.py").chmod(0o444)
    title = f"{TITLE} (6 verified; 8 left out)"
    action = workspace.actions("here.py")[title]
    assert action.edit is not None and action.edit.change_annotations is not None
    annotation, _ = action.edit.change_annotations.values()
    why = "Not included: locked.py (read-only), gone.py (deleted), on_disk.py (changed since its run), and 1 more"
    assert (annotation.label, annotation.description) == (title, why)
    now = {os.path.basename(path): edits for path, edits in edits_in(action).items()}
    assert set(now) == {"here.py", "elsewhere.py", "moved.py"}
    assert in_units(f"# 😀\n{TEXT}", now["moved.py"]) == f"# 😀\n{TEXT}".replace("2", "4")
    assert in_units(TEXT.replace("3", "5"), now["elsewhere.py"]) == TEXT.replace("3", "5").replace("2", "4")

    workspace.reviews = workspace.versions = False
    titles = list(workspace.actions("here.py"))
    assert titles[-1] == f"{TITLE} (6 verified; {why.replace('Not', 'not')})"


def test_a_line_inside_of_an_edit_that_has_changed_is_not_overwritten(workspace: Workspace) -> None:
    """The first and the last line are as they were, and as many lines are between them."""
    text = "if x:\n    a = 1\n    b = 2\nc = 3\n"
    path = str(workspace.folder / "long.py")
    Path(path).write_text(text)
    edit = Edit(Range(Position(1, 0), Position(4, 0)), "a = g(x)\n")
    fixed = tuple(finding(path, line, 0, 1, code="GB0170") for line in (1, 2))
    workspace.runs.append(Combined({path: (edit,)}, fixed, {path: text.split("\n")}))
    assert workspace.files("long.py") == {"Fix all GB0170 in this file (2 verified)": ["long.py"]}
    workspace.open("long.py", text.replace("a = 1", "a = 1  # mine"))
    assert workspace.files("long.py") == {}
    workspace.open("long.py", text.replace("c = 3", "c = 5"))
    assert len(workspace.files("long.py")) == 1, "the line after it is not touched"
    workspace.open("long.py", text.removesuffix("\nc = 3\n"))
    assert workspace.files("long.py") == {}, "there is no line after it any more"


def test_all_of_a_workspace_that_still_fit(workspace: Workspace) -> None:
    for name in ("a.py", "b.py", "c.py"):
        workspace.ran(name)
    alone = "Fix all GB0170 in this file (2 verified)"
    assert workspace.files("a.py") == {alone: ["a.py"], f"{TITLE} (6 verified)": ["c.py", "b.py", "a.py"]}
    workspace.open("b.py", "new = 0\na = 1\nb = 5\nc = 3\n")
    workspace.open("c.py", f"new = 0\n{TEXT}")
    assert workspace.files("a.py") == {alone: ["a.py"], f"{TITLE} (4 verified; 2 left out)": ["c.py", "a.py"]}


def test_what_was_proven_together_is_not_taken_apart(workspace: Workspace) -> None:
    workspace.ran("a.py", "b.py")
    assert workspace.files("a.py") == {"Fix all GB0170 in 2 files (2 verified)": ["a.py", "b.py"]}
    (workspace.folder / "b.py").chmod(0o444)
    assert workspace.files("a.py") == {}
    workspace.open("b.py", "b = 5")
    assert workspace.files("a.py") == {}
    workspace.ran("c.py")
    workspace.ran("d.py")
    assert workspace.files("a.py") == {f"{TITLE} (4 verified; 2 left out)": ["d.py", "c.py"]}


def test_another_file_has_its_name(workspace: Workspace) -> None:
    workspace.ran("b.py")
    assert list(workspace.actions("a.py", run=0)) == ["Fix all GB0170 in b.py (2 verified)"]


def test_what_an_older_run_had_is_not_proven_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest text of a script may have no proof: then that of the one before is not offered."""
    proofs = Proofs(Workers(), enabled=True)
    monkeypatch.setattr("irscope_server.running.proofs._content", lambda run, texts: texts)
    for content in ("first", "other", "second"):
        proofs._known[content] = Proven({}, {content: Combined({}, (), {})}, is_whole=True)
    report = SimpleNamespace(outcome=SimpleNamespace(kind=OutcomeKind.COMPLETED), findings=["one"])

    def ended(key: str, number: str, content: str, findings: bool = True) -> list[str]:
        plan = SimpleNamespace(settings=SimpleNamespace(fixes_seconds=20))
        run: Any = SimpleNamespace(key=key, plan=plan, spec=SimpleNamespace(cells=()))
        report.findings = ["one"] if findings else []
        outcome: Any = SimpleNamespace(run=number, report=report, texts=content)
        proofs.ended(run, outcome)
        return [name for one in proofs.newest() for name in one.combined]

    assert ended("a.py", "1", "first") == ["first"]
    assert ended("b.py", "2", "other") == ["first", "other"]
    assert ended("a.py", "3", "second") == ["other", "second"]
    assert ended("a.py", "4", "fixed", findings=False) == ["other"]


def test_edits_of_lines_count_lines_as_editors_do() -> None:
    for sign in "\f\v\x1c\x85\u2028\r":
        old = f"a = 1\n# {sign} #\nb = 2\nc = 3"
        assert applied(old, edits_between(old, old.replace("2", "4"))) == old.replace("2", "4")
