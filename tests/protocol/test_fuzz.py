"""Two seconds of each fuzzer (`python tests/fuzz --help`), with another seed each time; a minute of each every night.

The seconds are processor time, in one test for each fuzzer, so that the workers of pytest share them.
"""

from __future__ import annotations

import importlib
import os
import random
from pathlib import Path

import pytest

TARGETS = ("lsp", "dap", "mcp", "pipe", "store", "trace")
MINUTE = 60.0
DAILY = 1.0
SEED = os.environ.get("IRSCOPE_FUZZ_SEED")
"""To repeat a failure; read here, since tests see none of irscope's variables."""


# A minute of each finds what is rarer, of the same sort: here are the same messages and the same judge.
@pytest.mark.parametrize("seconds", [DAILY, pytest.param(MINUTE, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("target", TARGETS)
def test_what_no_well_behaved_sender_sends(target: str, seconds: float, tmp_path: Path) -> None:
    seed = int(SEED or random.SystemRandom().randrange(1_000_000))
    print(f"python tests/fuzz {target} --seconds {seconds:.0f} --seed {seed}")  # shown where it fails
    assert importlib.import_module(f"fuzz_{target}").fuzz(seconds, random.Random(seed), tmp_path) > 0
