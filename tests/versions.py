"""Which tests are run in every version of torch, and which of them expect what only some versions have.

`scripts/compatibility.py` runs the capture tests, ``pytest -m capture``, in an environment for each version.  A test that
expects what only a newer or an older torch has says so, with the reason; docs/versions.md has the number of such tests::

    @pytest.mark.since_torch("2.13", "records name …")
    @pytest.mark.until_torch("2.13", "the pass … is gone")

Neither ever skips a test on the version that irscope is developed with, `OWN`.
"""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Callable

import pytest

OWN = (2, 13)
CAPTURE = frozenset({
    "test_cache_misses", "test_cases", "test_compiled_autograd", "test_frugal", "test_guard_costs", "test_hooks",
    "test_inductor_stages", "test_inlined", "test_kernels_lower", "test_library_breaks", "test_markers", "test_progress",
    "test_provenance", "test_stages", "test_symbolic", "test_values",
})  # fmt: skip
"""The modules of `tests/worker` whose subject is what is captured; they need irscope, torch, transformers and pytest."""

KNOWN_GAPS = {
    (2, 9): {
        "calls that do not fit a loaded artifact", "functions that aot_compile compiles", "the exact place of a graph break",
        "what autotuning tried", "whether matrices are padded",
    },
}  # fmt: skip
"""What each run of an older torch says that it lacks, as the table in docs/versions.md has it; tests expect no other gap."""


def mark(item: pytest.Item) -> None:
    """Gives a test of the worker the marker `capture`, and skips it where it says that this torch lacks something."""
    if item.path.stem in CAPTURE:
        item.add_marker(pytest.mark.capture)
    here = torch_version()
    applies: Callable[[tuple[int, int]], bool]
    for name, applies in (("since_torch", lambda at: at <= here), ("until_torch", lambda at: here <= at)):
        for marker in item.iter_markers(name):
            version, reason = marker.args
            at = _parsed(version)
            if (at > OWN) if name == "since_torch" else (at < OWN):
                raise pytest.UsageError(f"{item.nodeid}: {name} {version} would skip the test where it is made")
            if not applies(at):
                since = "before" if name == "since_torch" else "after"
                item.add_marker(pytest.mark.skip(reason=f"{since} torch {version}: {reason}"))


def torch_version() -> tuple[int, int]:
    return _parsed(importlib.metadata.version("torch"))


def _parsed(version: str) -> tuple[int, int]:
    match = re.match(r"(\d+)\.(\d+)", version)
    assert match, version
    return int(match[1]), int(match[2])
