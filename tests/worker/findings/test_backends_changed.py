"""A function under another backend or with another ``dynamic`` is compiled again, in the fast lane too."""

from __future__ import annotations

from pathlib import Path

from support import run_forked, write

SCRIPT = """
import torch


def f(x):
    return x + 1


x = torch.ones(3)
for options in SETTINGS:
    torch.compile(f, **options)(x)
"""


def recompilations(folder: Path, settings: str) -> int:
    script = write(folder, SCRIPT.replace("SETTINGS", settings))
    return sum(finding.count for finding in run_forked(script, folder / "runs.db").findings("recompilation"))


def test_another_backend(tmp_path: Path) -> None:
    assert recompilations(tmp_path, '({"backend": "eager"}, {"backend": "aot_eager"}, {"backend": "eager"})') == 1


def test_another_setting_of_inductor(tmp_path: Path) -> None:
    assert recompilations(tmp_path, '({}, {"dynamic": True}, {"mode": "reduce-overhead"}, {})') == 2


def test_the_same_backend(tmp_path: Path) -> None:
    assert recompilations(tmp_path, '({}, {}, {"backend": "inductor"})') == 0
