"""What the prover says of changes that are wrong in one effect, and of right ones: ``python benchmarks/offered_fixes.py``.

The cases are those of `tests/worker/findings/wrong_fixes.py`.  Exit code 1 if a wrong one is verified, or fewer than 55 of 60
right ones are.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "worker" / "findings")]

from irscope.driver.trials.proving import Status  # noqa: E402
from support import shared_worker, stop_shared  # noqa: E402
from test_wrong_fixes import proofs  # noqa: E402
from wrong_fixes import CASES  # noqa: E402

LEAST_RIGHT = 55


def main(names: list[str]) -> int:
    """Prints a line for each case, and how many of both are verified."""
    verified: Counter[str] = Counter()
    for name in names or CASES:
        with tempfile.TemporaryDirectory() as folder:
            wrong, right = proofs(CASES[name], Path(folder), shared_worker())
        verified.update(side for side, proof in (("wrong", wrong), ("right", right)) if proof.status is Status.VERIFIED)
        print(
            f"{name:38} wrong: {wrong.status.value:10} {wrong.reason[:60]:60} right: {right.status.value} {right.reason}"
        )
    count = len(names or CASES)
    print(f"verified: {verified['wrong']} of {count} wrong ones, {verified['right']} of {count} right ones")
    stop_shared()
    return int(verified["wrong"] > 0 or (not names and verified["right"] < LEAST_RIGHT))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
