"""A quarter of a minute of each fuzzer (`python tests/fuzz --help`), with another seed each time."""

from __future__ import annotations

import importlib
import os
import random
from pathlib import Path

import pytest

SECONDS = 15.0


@pytest.mark.parametrize("target", ["lsp", "dap", "pipe", "store"])
def test_what_no_well_behaved_sender_sends(target: str, tmp_path: Path) -> None:
    seed = int(os.environ.get("IRSCOPE_FUZZ_SEED") or random.SystemRandom().randrange(1_000_000))
    print(f"python tests/fuzz {target} --seconds {SECONDS:.0f} --seed {seed}")  # shown where it fails
    assert importlib.import_module(f"fuzz_{target}").fuzz(SECONDS, random.Random(seed), tmp_path) > 0
