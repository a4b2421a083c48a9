"""What a compile error that is a graph break says, where no graph may be cut."""

from __future__ import annotations

from pathlib import Path

from support import run_forked

MARKERS = Path(__file__).parents[2] / "markers" / "compile_error"


def test_a_side_effect_in_the_body_of_an_operator(tmp_path: Path) -> None:
    (finding,) = run_forked(MARKERS / "side_effect_in_cond.py", tmp_path / "runs.db").findings("compile-error")
    assert finding.message == (
        "Compilation failed: `seen.append(1)` changes something outside of a function that becomes a separate graph."
    )
    assert finding.hints == ("Return the value from the function and store it after the call.",)
