"""The name of the GPU in the store; there is none here, so the scripts put another CUDA in the place of torch's."""

from __future__ import annotations

from pathlib import Path

import pytest
from irscope.store.store import Store
from support import run_forked, write

SCRIPT = """\
import torch

asked = []
torch.cuda.is_initialized = lambda: {initialized}
torch.cuda.get_device_name = lambda: asked.append(1) or {name}


@torch.compile(backend="eager")
def f(x):
    return x + 1


f(torch.ones(2))
f(torch.ones(2, dtype=torch.int64))
print("asked", len(asked))
{end}
"""


@pytest.mark.parametrize(
    ("initialized", "name", "end", "kept", "asked"),
    [
        ("True", "'NVIDIA H100 80GB HBM3'", "", "NVIDIA H100 80GB HBM3", 1),
        ("True", "'A GPU'", "import os; os.abort()", "A GPU", 1),
        ("False", "'never'", "", "", 0),
        ("True", "{}['no driver']", "", "", None),
    ],
    ids=["used", "crash", "not used", "fails"],
)
def test_the_gpu_is_kept_if_the_script_uses_it(
    tmp_path: Path, initialized: str, name: str, end: str, kept: str, asked: int | None
) -> None:
    script = write(tmp_path, SCRIPT.format(initialized=initialized, name=name, end=end))
    done = run_forked(script, tmp_path / "runs.db")
    with Store(done.store) as opened:
        assert opened.device_of(opened.find_run()) == kept, done.stdout + done.stderr
    if asked is not None:
        assert f"asked {asked}" in done.stdout
