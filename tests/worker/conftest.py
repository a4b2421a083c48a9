"""A fork server that test files share where it is not their subject: a run in a fork saves the import of torch."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from irscope.worker.client import Worker, WorkerState, can_fork, wait_for


@pytest.fixture(scope="session")
def shared_worker() -> Iterator[Worker | None]:
    """Nothing on systems where forking is not safe: runs are fresh processes then."""
    if not can_fork():
        yield None
        return
    worker = Worker(sys.executable, {"PYTHONDONTWRITEBYTECODE": "1"})
    assert wait_for(worker, 120) is WorkerState.READY, worker.reason
    yield worker
    worker.stop()
