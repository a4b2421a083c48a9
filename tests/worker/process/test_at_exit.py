"""Functions at exit that compile see what they see in plain Python: some backends fail while the interpreter shuts down."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import RunScript, run_captured, run_forked, run_plain, write

SCRIPT = """\
    import atexit, sys
    import torch

    backend, before = sys.argv[1:]
    first = torch.compile(lambda x: x * 2 + 1, backend=backend)
    second = torch.compile(lambda x: x.sin() + 1, backend=backend)
    if before == "compiled":
        print(first(torch.ones(3)))

    @atexit.register
    def late():
        for function, size in ((first, 3), (first, 4), (second, 3)):
            try:
                print(function(torch.ones(size)))
            except BaseException as error:
                print(type(error).__name__, str(error).partition("Set TORCHDYNAMO")[0])
"""


@pytest.mark.parametrize(
    ("run", "how"),
    [
        pytest.param(run_captured, ("inductor", "not"), marks=pytest.mark.nightly),
        (run_forked, ("inductor", "not")),
        pytest.param(run_captured, ("aot_eager", "not"), marks=pytest.mark.nightly),
        pytest.param(run_captured, ("aot_eager", "compiled"), marks=pytest.mark.nightly),
        pytest.param(run_forked, ("aot_eager", "compiled"), marks=pytest.mark.nightly),
    ],
    ids=["inductor", "inductor in a fork", "aot_eager", "aot_eager again", "aot_eager again in a fork"],
)
def test_a_compile_at_exit(tmp_path: Path, run: RunScript, how: tuple[str, str]) -> None:
    """In a fork the modules are there whose import fails then, so a first compile with ``aot_eager`` works there."""
    script = write(tmp_path, SCRIPT)
    plain = run_plain(script, how)
    ran = run(script, tmp_path / "runs.db", "fast", how)
    assert (ran.stdout, ran.report.outcome.exit_code) == (plain.stdout, plain.returncode)
    assert ("Error" in plain.stdout or "Failed" in plain.stdout) == (how != ("aot_eager", "compiled"))
