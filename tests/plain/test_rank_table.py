"""The table of docs/ranks.md is what was measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import rank_table  # noqa: E402


def test_the_table_of_the_docs_is_that_of_the_stored_output() -> None:
    data = json.loads(rank_table.FILE.read_text(encoding="utf-8"))
    table = rank_table.markdown(data)
    assert table in (ROOT / "docs" / "ranks.md").read_text(encoding="utf-8")
    data["cases"][0]["false"] = ["train.py:3"]
    data["waits"][0]["is_right"] = False
    for told in ("36 constants at their line, 1 false", "rank and line wrong in 1"):
        assert told in rank_table.markdown(data) and told not in table
