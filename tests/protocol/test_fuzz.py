"""Some seconds of each fuzzer (`python tests/fuzz --help`), with another seed each time; a minute of each every night."""

from __future__ import annotations

import importlib
import os
import random
from pathlib import Path

import pytest

SHORT, LONG = 3.0, 60.0


# A minute finds what is rarer, of the same sort: the seconds of `npm test` have the same messages and the same judge.
@pytest.mark.parametrize("seconds", [SHORT, pytest.param(LONG, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("target", ["lsp", "dap", "pipe", "store", "trace"])
def test_what_no_well_behaved_sender_sends(target: str, seconds: float, tmp_path: Path) -> None:
    seed = int(os.environ.get("IRSCOPE_FUZZ_SEED") or random.SystemRandom().randrange(1_000_000))
    print(f"python tests/fuzz {target} --seconds {seconds:.0f} --seed {seed}")  # shown where it fails
    assert importlib.import_module(f"fuzz_{target}").fuzz(seconds, random.Random(seed), tmp_path) > 0
