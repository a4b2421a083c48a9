"""What every tier of the tests has in common.

`tests/plain` needs no torch, `tests/worker` runs scripts with the real one, `tests/protocol` drives the language
server and `tests/editor` the extension in a browser.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))

import support  # noqa: E402
from irscope.worker.client import Worker  # noqa: E402
from support import Ran, RunScript, run_captured, write  # noqa: E402
from versions import mark  # noqa: E402

# Read before `_clean_environment` takes irscope's variables away.
ENVIRONMENTS = os.environ.get("IRSCOPE_TEST_ENVIRONMENTS", "")


def pytest_configure(config: pytest.Config) -> None:
    # A shell that starts pytest in the background lets it ignore Ctrl-C, and each script of a test would inherit that.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "worker: runs scripts with the real torch (minutes)")
    config.addinivalue_line("markers", "capture: what is captured of every version of torch (see versions.py)")
    config.addinivalue_line("markers", "nightly: more of the same sort; only `npm run test:all` runs it")
    config.addinivalue_line("markers", "since_torch(version, reason): expects what older versions lack")
    config.addinivalue_line("markers", "until_torch(version, reason): expects what newer versions lack")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE / "worker" in item.path.parents:
            item.add_marker(pytest.mark.worker)
            mark(item)
        if isinstance(item, pytest.Function) and uses_what_its_module_made(item):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


def uses_what_its_module_made(item: pytest.Function) -> bool:
    """Whether it shares a run with other tests of its file: two processes would each make one."""
    known = item._fixtureinfo.name2fixturedefs.values()
    return any(fixture.scope == "module" for fixtures in known for fixture in fixtures)


@pytest.fixture(scope="session", autouse=True)
def _clean_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Scripts see none of the caller's settings, one folder of compiled kernels (that of `npm test` for all tiers, else
    one for the session), and a store of their own."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    before = dict(os.environ)
    kernels = before.get("IRSCOPE_TEST_KERNELS") or str(shared / "inductor")
    for name in list(os.environ):
        if name.startswith(("TORCH", "INDUCTOR_", "IRSCOPE_", "PYTORCH_")):
            del os.environ[name]
    os.environ.update(
        TORCHINDUCTOR_CACHE_DIR=kernels,
        IRSCOPE_STORE=str(base / "default-store" / "runs.db"),
        OMP_NUM_THREADS="1",
        # Else every process that compiles starts another one, to find out that the processor can do what it says.
        TORCHINDUCTOR_VEC_ISA_OK="1",
    )
    yield
    support.stop_shared()
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="session")
def shared_worker() -> Worker | None:
    """See `support.shared_worker`."""
    return support.shared_worker()


@pytest.fixture
def run_script(tmp_path: Path) -> RunScript:
    """``run_script(source, lane="fast", args=(), …)`` writes a script, runs it under capture and returns a `Ran`."""

    def run(source: str, lane: str = "fast", *, name: str = "script.py", **options: Any) -> Ran:
        return run_captured(write(tmp_path, source, name), tmp_path / "store" / "runs.db", lane, **options)

    return run


@pytest.fixture
def triton() -> Iterator[None]:
    """Fresh processes, those of `run_captured`, can import triton."""
    with support.triton_importable():
        yield


@pytest.fixture(scope="session")
def python_with() -> Callable[[str], str]:
    """``python_with("onnx")`` is an interpreter that has torch and what that pipeline needs (scripts/pipelines.mjs)."""

    def find(pipeline: str) -> str:
        python = Path(ENVIRONMENTS) / pipeline / "bin" / "python"
        if not ENVIRONMENTS or not python.is_file():
            pytest.skip(f"no environment for {pipeline}: npm run test:pipelines -- {pipeline}")
        return str(python)

    return find
