"""A trace that is cut off anywhere: what comes before is read, what is missing is counted, and strict mode refuses it."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from irscope.opening.index import TraceIndex
from irscope.opening.paths import Roots
from irscope.opening.trace_run import TraceSpec, open_trace
from irscope.opening.warnings import TraceError
from irscope.store.store import Store

TRACES = Path(__file__).parent / "traces"
LOG = gzip.decompress((TRACES / "trace.log.gz").read_bytes())
CUTS = range(1024, 65 * 1024, 1024)
"""Bytes before the end."""
NORMAL = (1024, 7 * 1024, 30 * 1024, 64 * 1024)
_PART = "of the trace"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "runs.db"))


def ends_whole(text: bytes) -> bool:
    """Whether the cut is between two records: then nobody can see it."""
    following = LOG[len(text) : len(text) + 2]
    return text.endswith(b"\n") and following[:1] != b"\t"


@pytest.mark.parametrize("cut", [pytest.param(n, marks=() if n in NORMAL else pytest.mark.nightly) for n in CUTS])
def test_a_log_that_is_cut_off(cut: int, tmp_path: Path, store: Store) -> None:
    text, path = LOG[:-cut], tmp_path / "cut.log"
    path.write_bytes(text)
    whole = text.count(b'{"compilation_metrics"')
    with TraceIndex(str(path), str(tmp_path / "index")) as index:
        index.update()
        found = index.overview()
    with store:
        report = store.report(open_trace(TraceSpec(str(path), Roots(str(TRACES))), store))
        warned = [gap for gap in report.capture_gaps if _PART in gap.what]
        assert len(report.compiles) >= whole > 0
        assert whole - 1 <= found.number <= whole
        assert bool(warned) != ends_whole(text), [gap.why for gap in warned]
        assert all("cut.log:" in gap.why for gap in warned)
        if warned:
            with pytest.raises(TraceError, match=r"cut\.log:\d+: "):
                open_trace(TraceSpec(str(path), Roots(str(TRACES)), strict=True), store)
            assert len(store.runs()) == 1, "nothing is left of it"


def test_a_packed_log_that_is_cut_off(tmp_path: Path, store: Store) -> None:
    packed, path = (TRACES / "trace.log.gz").read_bytes(), tmp_path / "cut.log.gz"
    path.write_bytes(packed[: len(packed) // 2])
    with store:
        report = store.report(open_trace(TraceSpec(str(path), Roots(str(TRACES))), store))
        assert report.compiles and any("cannot be unpacked" in gap.why for gap in report.capture_gaps)
        with pytest.raises(TraceError, match="unpacked"):
            open_trace(TraceSpec(str(path), Roots(str(TRACES)), strict=True), store)
