"""How well the findings agree with the truth of `tests/cases`.

    .venv/bin/python benchmarks/cases.py [NAME…]

Runs each case in the fast lane and prints what is missed or false, then one line of figures.  Exit code 0 where
everything is found at its exact range and nothing is false.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support import run_captured
from truth import Score, case_names, compare, script_of


def main(names: list[str]) -> int:
    for name in [name for name in os.environ if name.startswith("TORCH")]:
        del os.environ[name]
    os.environ["OMP_NUM_THREADS"] = "1"
    total = Score()
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            report = run_captured(script_of(name), Path(folder) / "runs.db", "fast", cwd=folder).report
        score = compare(name, report)
        for problem in score.problems:
            print(f"{name}: {problem}")
        total.add(score)
    print(
        f"{len(names)} cases: breaks {total.breaks_at_line}/{total.breaks} at the exact line, {total.breaks_at_range} at "
        f"the exact range, {total.breaks_counted} with the exact count; recompilations "
        f"{total.recompilations_found}/{total.recompilations}; errors {total.errors_found}/{total.errors}; "
        f"limits {total.limits_found}/{total.limits}; false {total.false}"
    )
    return 1 if total.problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or case_names()))
