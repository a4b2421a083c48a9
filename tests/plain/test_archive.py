"""What the server keeps of the store in memory, and for how long."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from facts import a_compile, a_stage, an_outcome
from irscope.protocol import Lane
from irscope.store.store import Store
from irscope_server.base import archive
from irscope_server.base.archive import Archive

GUARDS = "TREE_GUARD_MANAGER:\n+- RootGuardManager\n| +- TYPE_MATCH: ___check_type_id(L['x'], 7)  # h = f(x)  # m.py:3 in f\n"


async def test_what_was_read_goes_after_a_while_and_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "_REST_SECONDS", 0.05)
    path = str(tmp_path / "runs.db")
    with Store(path) as store:
        run = store.create_run("m.py", [], Lane.DEEP, "digest")
        store.put_compile(run, a_compile())
        store.put_stage(run, "0/0", a_stage("guards"), GUARDS, 1)
        store.set_outcome(run, an_outcome())
        store.tidy(run)
    read = Archive(path)
    try:
        report = await read.report(run)
        for _ in range(2):
            (guards,) = await read.guards(report, report.compiles)
            assert [guard.source for guard in guards.guards] == ["x"]
            assert await read.ask(kept_bytes) > 0
            for _ in range(200):
                await asyncio.sleep(0.02)
                assert read._store is not None
                if not read._guards and not read._resting and not read._thread.submit(kept_bytes, read._store).result():
                    break
            else:
                pytest.fail("it is kept for ever")
    finally:
        read.close()


async def test_what_questions_aside_remember_goes_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "_REST_SECONDS", 0.05)
    read = Archive(str(tmp_path / "runs.db"))
    try:
        await read.ask_aside(lambda store: read.remembered.update(last=store))
        assert read.remembered
        await read.ask(lambda store: store.runs(1))
        for _ in range(200):
            await asyncio.sleep(0.02)
            if not read.remembered:
                break
        else:
            pytest.fail("it is kept for ever")
    finally:
        read.close()


def kept_bytes(store: Store) -> int:
    return sum(map(len, store._texts._packs.values()))


PACKING = """
import re, sys, threading
from pathlib import Path
from irscope.store.texts import _packed
from irscope_server.app import serve

def resident():
    return int(re.search(r"VmRSS:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) / 1000

def pack():
    _packed(bytes(range(256)) * 16_000)

serve._give_large_memory_back()
before = resident()
for _ in range(4):
    thread = threading.Thread(target=pack)
    thread.start()
    thread.join()
print(resident() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_that_packing_took_goes_back_to_the_system() -> None:
    ran = subprocess.run([sys.executable, "-c", PACKING], capture_output=True, text=True, timeout=60)
    assert float(ran.stdout or "nan") < 8, ran.stderr + ran.stdout
