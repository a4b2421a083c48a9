"""The kernels of small programs for devices that are not here are those that were recorded with this torch and triton.

``UPDATE_EXPECT=1`` records them again (`-k all`), after a new version of torch or triton: read the difference.  That a real H100 makes
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
# A reduction, a backward and an external kernel, on one device of each maker.  The others are larger or more of the same.
DAILY = ("perceptron_trained",), ("h100", "mi300x")


@pytest.mark.skipif(torch_version() != OWN, reason="other versions of torch make other kernels")
@pytest.mark.parametrize(
    ("programs", "targets"),
    [pytest.param(*DAILY, id="one"), pytest.param((), TARGETS, id="all", marks=pytest.mark.nightly)],
)
def test_kernels_of_programs_for_devices(
    programs: tuple[str, ...], targets: tuple[str, ...], tmp_path: Path, triton: None
) -> None:
    script = FOLDER / "programs.py"
    ran = run_captured(
        script,
        tmp_path / "runs.db",
        "deep",
        programs,
        targets=targets,
        fake=True,
        machine_code=False,
        symbolic_trace=False,
    )
    assert ran.report.outcome.kind is OutcomeKind.COMPLETED, ran.stderr
    assert ran.report.capture_gaps == ()
    # Each program is one compile, backward and all.
    ids = dict(zip((compile.id for compile in ran.report.compiles), ran.stdout.split(), strict=True))
    kernels = [kernel for kernel in ran.report.predicted_kernels if kernel.language == "triton" and kernel.is_generated]
    found: dict[str, dict[str, str]] = {}
    for kernel in kernels:
        program = ids[kernel.compile.removesuffix(f"/{kernel.target}")]
        source = comparable_source(ran.text(kernel.stage))
        found.setdefault(f"{program} {kernel.target}", {})[f"{kernel.stage.count('backward')} {kernel.name}"] = source
    if os.environ.get("UPDATE_EXPECT") == "1" and not programs:
        RECORDED.write_bytes(gzip.compress(json.dumps(found, indent=0, sort_keys=True).encode(), mtime=0))
    recorded = json.loads(gzip.decompress(RECORDED.read_bytes()))
    names = programs or {key.partition(" ")[0] for key in recorded}
    assert sorted(found) == sorted(f"{program} {target}" for program in names for target in targets)
    for key, sources in found.items():
        assert sorted(sources) == sorted(recorded[key]), key
        for name, source in sources.items():
            assert source == recorded[key][name], (key, name)
    operations = {compile.id: compile.graph_ops for compile in ran.report.compiles}
    assert all(each.graph_ops == operations[each.id.rpartition("/")[0]] for each in ran.report.predictions)
    # Nothing below the source was asked for.
    assert not any(stage.name in ("ptx", "amdgcn") for each in ran.report.predictions for stage in each.stages)
