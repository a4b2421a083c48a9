"""What the user hears when a run cannot begin: what is wrong, and what to do about it; and that it works once it is done."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from lsp_editor import Editor, StartEditor


def environment(folder: Path, torch: str | None) -> str:
    """An interpreter without packages, or with something that says it is a version of PyTorch."""
    packages = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    packages.mkdir(parents=True)
    (folder / "bin").mkdir()
    (folder / "pyvenv.cfg").write_text(f"home = {Path(sys.base_prefix) / 'bin'}\n")
    python = folder / "bin" / "python"
    python.symlink_to(Path(sys.executable).resolve())
    if torch is not None:
        (packages / "torch").mkdir()
        (packages / "torch" / "__init__.py").write_text("")
        (packages / "torch" / "version.py").write_text(torch)
    return str(python)


NO_WORKER = {"worker": {"enabled": False}}  # it would import torch for a run that cannot begin
TROUBLES: dict[str, tuple[Callable[[Path], dict[str, object]], tuple[str, ...]]] = {
    "no interpreter": (
        lambda folder: {"python": str(folder / "nowhere" / "python")},
        ("nowhere/python", "irscope.python"),
    ),
    "no torch": (
        lambda folder: {"python": environment(folder / "bare", None)},
        ("PyTorch is not installed in", "pip install torch", "irscope.python"),
    ),
    "old torch": (
        lambda folder: {"python": environment(folder / "old", "__version__ = '2.1.0'\n")},
        ("PyTorch 2.1.0 in", "too old", "2.9", "another interpreter"),
    ),
    "broken torch": (
        lambda folder: {"python": environment(folder / "broken", "")},
        ("does not look like PyTorch", "Reinstall torch"),
    ),
    "a store that is none": (
        lambda folder: {"storePath": str(no_store(folder)), **NO_WORKER},
        ("none.db cannot be used", "irscope.storePath"),
    ),
    "a folder that cannot be written": (
        lambda folder: {"storePath": "/proc/full/runs.db", **NO_WORKER},
        ("/proc/full/runs.db cannot be used", "irscope.storePath"),
    ),
}


def no_store(folder: Path) -> Path:
    path = folder / "none.db"
    path.write_text("no database, and longer than the header of one " * 50)
    return path


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_a_run_that_cannot_begin_says_what_to_do(
    start_editor: StartEditor, script: Path, tmp_path: Path, trouble: str
) -> None:
    settings, words = TROUBLES[trouble]
    editor: Editor = await start_editor(options=settings(tmp_path))
    uri = editor.open(script)
    await editor.until(lambda: bool(editor.client.messages), 60)
    said = " ".join(message.message for message in editor.client.messages)
    assert all(word in said for word in words), said
    assert len(editor.client.messages) == 1, "it is said once"
    result = await editor.request("irscope/run", uri=uri, lane="fast")
    assert result.outcome == "environment-error" and words[0] in result.message
    await editor.until(lambda: editor.state == "refused")
    assert words[0] in editor.told["irscope/worker"][-1].text
    await editor.until(lambda: any(each.code == "environment-error" for each in editor.diagnostics(uri)))
    [shown] = [each for each in editor.diagnostics(uri) if each.code == "environment-error"]
    assert words[0] in shown.message
