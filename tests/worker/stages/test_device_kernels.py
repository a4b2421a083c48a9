"""The kernels of small programs for devices that are not here are those that were recorded with this torch and triton.

``UPDATE_EXPECT=1`` records them again, after a new version of torch or triton: read the difference.  That a real H100 makes
the same kernels is checked by `benchmarks/targets.py` and `benchmarks/recorded_targets.py`.
"""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest
from irscope.comparing.certificates import comparable_source
from irscope.protocol import OutcomeKind
from support import REPOSITORY, run_captured
from versions import OWN, torch_version

FOLDER = REPOSITORY / "tests" / "device_kernels"
RECORDED = FOLDER / "kernels.json.gz"
TARGETS = ("h100", "b200", "mi300x")


@pytest.mark.skipif(torch_version() != OWN, reason="other versions of torch make other kernels")
def test_kernels_of_twelve_programs_for_three_devices(tmp_path: Path, triton: None) -> None:
    ran = run_captured(FOLDER / "programs.py", tmp_path / "runs.db", "deep", targets=TARGETS, fake=True)
    assert ran.report.outcome.kind is OutcomeKind.COMPLETED, ran.stderr
    assert ran.report.capture_gaps == ()
    kernels = [kernel for kernel in ran.report.predicted_kernels if kernel.language == "triton" and kernel.is_generated]
    found = {f"{kernel.compile}/{kernel.name}": comparable_source(ran.text(kernel.stage)) for kernel in kernels}
    if os.environ.get("UPDATE_EXPECT") == "1":
        RECORDED.write_bytes(gzip.compress(json.dumps(found, indent=0, sort_keys=True).encode(), mtime=0))
    recorded = json.loads(gzip.decompress(RECORDED.read_bytes()))
    assert sorted(found) == sorted(recorded)
    for name, source in found.items():
        assert source == recorded[name], name
    for target, code in (("h100", ".target sm_90a"), ("b200", ".target sm_100a"), ("mi300x", "gfx942")):
        mine = [kernel for kernel in kernels if kernel.target == target]
        assert len(mine) > 40
        machine = "amdgcn" if target == "mi300x" else "ptx"
        assert code in ran.text(f"{mine[0].stage}/{machine}")
