"""Python's garbage collector while the script imports torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """\
import gc
import sys
from irscope.internals.importing import ImportWatcher

sys.path.insert(0, sys.argv[1])
ImportWatcher().install()
{before}
frozen = gc.get_freeze_count()
try:
    import torch
except RuntimeError as error:
    print(error)
print(gc.in_the_import, gc.isenabled(), gc.get_freeze_count() > frozen)
"""
TORCH = "import gc\ngc.in_the_import = gc.isenabled()\n"


@pytest.mark.parametrize(
    ("before", "torch", "printed"),
    [
        ("", TORCH, "False True True"),
        ("gc.disable()", TORCH, "False False False"),
        ("import json", TORCH + "raise RuntimeError('not built')\n", "not built\nFalse True True"),
    ],
)
def test_the_collector_rests_while_torch_is_imported(before: str, torch: str, printed: str, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text(torch, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(before=before), str(tmp_path)],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.strip() == printed


def test_other_modules_are_imported_as_usual(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text(TORCH, encoding="utf-8")
    (tmp_path / "other.py").write_text("import gc\nprint(gc.isenabled())\n", encoding="utf-8")
    code = SCRIPT.format(before="import other")
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[0] == "True"
