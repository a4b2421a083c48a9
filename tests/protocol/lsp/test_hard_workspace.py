"""*Fix everything that is proven in the workspace* on files that are hard to edit, with real runs and real trials."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from lsp_editor import SHARED, AtWork, edits_in, in_units, versions_in
from lsprotocol import types
from support import Instant, late
from test_tried_fixes import _actions

SOURCE = """\
import torch

@torch.compile
def f(x):
    n = x.sum().item()
    return x * n

f(torch.randn(4))
"""
LINE = 4
TITLE = "Fix everything that is proven in the workspace"
FILES = {
    "plain.py": SOURCE,
    "crlf.py": SOURCE.replace("\n", "\r\n"),
    "mark.py": "\ufeff" + SOURCE,
    "tabs.py": SOURCE.replace("    n =", "\ts = '😀'; n =").replace("    ", "\t").replace("item()", "item()  # é"),
    "other_line.py": SOURCE,
    "fixed_line.py": SOURCE,
    "on_disk.py": SOURCE,
    "gone.py": SOURCE,
    "locked.py": SOURCE,
}


@pytest.mark.nightly
@SHARED
async def test_a_workspace_of_hard_files(at_work: AtWork, tmp_path: Path) -> None:
    editor = await at_work({"fixes": {"trySeconds": 100}, "run": {"cwd": str(tmp_path)}})
    uris = {}
    for name, text in FILES.items():
        (tmp_path / name).write_bytes(text.encode())
        uris[name] = editor.open(tmp_path / name, text.removeprefix("\ufeff"))
        begun = Instant()
        while not any(one.title.startswith("Verified") for one in await _actions(editor, uris[name], LINE)):
            assert not late(begun, 120), name
            await asyncio.sleep(0.2)
    everything = f"{TITLE} ({len(FILES)} verified)"
    begun = Instant()
    while everything not in {one.title for one in await _actions(editor, uris["plain.py"], LINE)}:
        assert not late(begun, 120), [one.title for one in await _actions(editor, uris["plain.py"], LINE)]
        await asyncio.sleep(0.2)

    texts = {name: text.removeprefix("\ufeff") for name, text in FILES.items()}
    texts["other_line.py"] = f"# 😀\n{SOURCE.replace('randn(4)', 'randn(5)')}"
    texts["fixed_line.py"] = SOURCE.replace("item()", "item() + 1")
    for name in ("other_line.py", "fixed_line.py"):
        editor.change(uris[name], texts[name], 7)
    for name in ("on_disk.py", "gone.py", "locked.py"):
        editor.close_document(uris[name])
    (tmp_path / "on_disk.py").write_text(SOURCE.replace("x.sum()", "x.mean()"))
    (tmp_path / "gone.py").unlink()
    (tmp_path / "locked.py").chmod(0o444)
    (action,) = [one for one in await _actions(editor, uris["plain.py"], LINE) if one.title.startswith(TITLE)]
    assert action.title == f"{TITLE} (5 verified; 4 left out)"
    assert action.edit is not None and action.edit.change_annotations is not None
    annotation, asks = action.edit.change_annotations.values()
    assert isinstance(annotation, types.ChangeAnnotation) and isinstance(asks, types.ChangeAnnotation)
    assert asks.needs_confirmation and not annotation.needs_confirmation
    reasons = (annotation.description or "").removeprefix("Not included: ")
    assert reasons == "locked.py (read-only), gone.py (deleted), on_disk.py (changed since its run), and 1 more"
    made = {os.path.basename(uri): (uri, edits) for uri, edits in edits_in(action).items()}
    assert set(made) == {"plain.py", "crlf.py", "mark.py", "tabs.py", "other_line.py"}
    for name, (uri, edits) in made.items():
        assert versions_in(action)[uri] == (7 if name == "other_line.py" else 1)
        lines = [line.rstrip("\r") for line in in_units(texts[name], edits).split("\n")]
        assert lines == texts[name].replace("\r", "").replace(".item()", ".detach()").split("\n"), name
