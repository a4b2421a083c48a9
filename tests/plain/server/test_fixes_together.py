"""Fixes that were proven together, in texts that may have changed since."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from irscope.protocol import Edit, Position, Range
from irscope_server.base.line_map import LineMap
from irscope_server.language.tried_fixes import fixes_together
from irscope_server.running.proofs import Combined, Proven
from lsprotocol import types
from made import finding

TEXT = ["a = 1", "b = 2", "c = 3"]


def _combined(*files: str) -> Combined:
    edit = Edit(Range(Position(2, 4), Position(2, 5)), "4")
    fixed = tuple(finding(files[0], line, 0, 1, code="GB0170") for line in (2, 3))
    return Combined(dict.fromkeys(files, (edit,)), fixed, dict.fromkeys(files, TEXT))


def _offered(now: dict[str, list[str]], at: str, *proven: Combined) -> dict[str, list[str]]:
    """By title of the action, the files that it changes."""
    whole = [Proven({}, {"": one}) for one in proven]
    context: Any = SimpleNamespace(
        proofs=SimpleNamespace(of_run=lambda run: whole[0], newest=lambda: whole),
        texts=SimpleNamespace(lines=lambda path: now.get(path, TEXT)),
        views=SimpleNamespace(line_map=lambda old, new: LineMap(old or (), new)),
        uri_of=lambda path: path,
        encoding=types.PositionEncodingKind.Utf16,
        reviews_edits=True,
    )
    placed: Any = SimpleNamespace(run="1", finding=finding(at, 2, 0, 1, code="GB0170"))
    found = {}
    for action in fixes_together(context, [placed]):
        assert action.edit is not None
        documents = [one.text_document.uri for one in action.edit.document_changes or ()]  # type: ignore[union-attr]
        found[action.title] = [*(action.edit.changes or ()), *documents]
    return found


def test_all_of_a_workspace_that_still_fit() -> None:
    runs = (_combined("/a.py"), _combined("/b.py"), _combined("/c.py"))
    title = "Fix everything that is proven in the workspace"
    offered = _offered({}, "/a.py", *runs)
    assert offered == {
        "Fix all GB0170 in this file (2 verified)": ["/a.py"],
        f"{title} (6 verified)": ["/c.py", "/b.py", "/a.py"],
    }
    unsaved = {"/b.py": ["new = 0", "a = 1", "b = 5", "c = 3"], "/c.py": ["new = 0", *TEXT]}
    assert list(_offered(unsaved, "/a.py", *runs)) == [
        "Fix all GB0170 in this file (2 verified)", f"{title} (4 verified)",
    ]  # fmt: skip


def test_what_was_proven_together_is_not_taken_apart() -> None:
    both = _combined("/a.py", "/b.py")
    assert _offered({}, "/a.py", both) == {"Fix all GB0170 in 2 files (2 verified)": ["/a.py", "/b.py"]}
    assert _offered({"/b.py": ["b = 5"]}, "/a.py", both) == {}
    offered = _offered({"/b.py": ["b = 5"]}, "/a.py", both, _combined("/c.py"), _combined("/d.py"))
    assert offered == {"Fix everything that is proven in the workspace (4 verified)": ["/d.py", "/c.py"]}


def test_another_file_has_its_name() -> None:
    assert list(_offered({}, "/a.py", _combined("/b.py"))) == ["Fix all GB0170 in b.py (2 verified)"]
