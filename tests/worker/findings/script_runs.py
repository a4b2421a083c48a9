"""Runs many scripts in one captured run, one after the other, each with Dynamo as at the beginning."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from support import Ran, run_forked

DRIVER = """
import json
import os
import runpy
import sys

import torch

# Not asked for here: PyTorch empties the processor's caches before it measures, for each compile.
torch._dynamo.guards.profile_guard_manager = lambda *args: 0.0

out, *paths = sys.argv[1:]
errors = {}
settings = torch._dynamo.config.save_config()
for path in paths:
    torch._dynamo.reset()
    sys.path.insert(0, os.path.dirname(path))
    try:
        runpy.run_path(path)
    except Exception as error:
        errors[path] = f"{type(error).__name__}: {error}"
    sys.path.remove(os.path.dirname(path))
    torch._dynamo.config.load_config(settings)
with open(out, "w") as file:
    json.dump(errors, file)
"""


def run_all(folder: Path, name: str, scripts: Sequence[Path], may_fail: bool = False) -> Ran:
    """The run, in the fast lane; nothing may be missed.

    Args:
        folder: Where the driver is written, and what it says.
        name: Of the driver.
        may_fail: Whether a script may end with an error.
    """
    driver, out = folder / f"{name}.py", folder / f"{name}.json"
    driver.write_text(DRIVER, encoding="utf-8")
    ran = run_forked(driver, folder / f"{name}.db", "fast", [str(out), *map(str, scripts)], cwd=str(folder))
    assert out.exists(), ran.stderr[-3000:]
    assert may_fail or out.read_text() == "{}"
    assert ran.report.capture_gaps == (), ran.report.capture_gaps
    return ran
