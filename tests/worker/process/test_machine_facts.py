"""What the worker has found out about the machine, its forks do not find out again."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from irscope.worker.client import Worker, WorkerState, can_fork, wait_for
from support import Instant, Ran, late, run_captured, run_plain_forked, write

pytestmark = [
    pytest.mark.skipif(not can_fork(), reason="forking with torch is not safe on this system"),
    pytest.mark.nightly,  # without it forks are only slower, and its worker takes twenty seconds to find it all out
]

# It asks as a compile does.  `WAYS` takes away what the answers are found out with, so that only who knows them has them.
ASKS = """\
import torch
import torch._inductor.compile_fx
from torch._inductor import codecache, config, cpp_builder, cpu_vec_isa, pattern_matcher
from torch._inductor.fx_passes import fuse_attention, pad_mm

WAYS

def header():
    made, make = [], codecache._precompile_header
    codecache._precompile_header = lambda *command, **options: made.append(make(*command, **options)) or made[-1]
    codecache.CppPythonBindingsCodeCache.load_async("int x;", submit_fn=lambda compile: None)
    return made

def patterns():
    for register in (pad_mm._pad_mm_init, fuse_attention._sfdp_init):
        register(torch.device("cpu"))
    return [pattern[0].__name__ for pattern in pattern_matcher._known_precompiled_patterns]

for name, ask in (
    ("key", lambda: codecache.torch_key().hex()),
    ("vectors", lambda: str(cpu_vec_isa.pick_vec_isa())),
    ("header", header),
    ("patterns", patterns),
):
    try:
        print(name, ask())
    except ZeroDivisionError:
        print(name, "not known")
"""
NO_WAYS = """\
def fails(*_, **__):
    return 1 / 0
codecache.build_code_hash = cpu_vec_isa.VecISA._probe_load = cpp_builder.run_compile_cmd = fails
pad_mm.gen_register_replacement = fuse_attention.gen_register_replacement = fails
if hasattr(cpu_vec_isa, "VecISA") and not hasattr(cpu_vec_isa.VecISA, "_probe_load"):
    raise AssertionError("the ways have other names")
"""
ENVIRONMENT = {"TORCHINDUCTOR_VEC_ISA_OK": ""}


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """One that has been idle for long enough."""
    worker = Worker(sys.executable, ENVIRONMENT)
    assert wait_for(worker, 120) is WorkerState.READY, worker.reason
    folder, begun = tmp_path_factory.mktemp("warm"), Instant()
    while "not known" in ask(worker, folder, NO_WAYS).stdout:
        assert not late(begun, 90), "the worker has not found it out"
        time.sleep(4)
    yield worker
    worker.stop()


def ask(worker: Worker, folder: Path, ways: str = "") -> Ran:
    return run_captured(write(folder, ASKS.replace("WAYS", ways)), folder / "runs.db", env=ENVIRONMENT, worker=worker)


def found_out(folder: Path, ways: str = "") -> str:
    """By a process that has not been told."""
    script = write(folder, ASKS.replace("WAYS", ways))
    return run_plain_forked(script, before="import torch._inductor.config as c\nc.cpp.vec_isa_ok = None\n").stdout


def test_forks_know_what_a_fresh_process_finds_out(worker: Worker, tmp_path: Path) -> None:
    known = ask(worker, tmp_path, NO_WAYS).stdout
    assert known == found_out(tmp_path)
    assert len(known.split("\n")[0]) == len("key ") + 64


def test_a_fork_sees_nothing_of_it(worker: Worker, tmp_path: Path) -> None:
    script = write(
        tmp_path,
        """
        import os, torch
        from torch._subclasses import meta_utils
        print(len(os.listdir("/proc/self/task")), dict(torch._dynamo.utils.counters), meta_utils.DESCRIBER_NEXT_ID)
        """,
    )
    assert run_captured(script, tmp_path / "runs.db", env=ENVIRONMENT, worker=worker).stdout == "1 {} 0\n"


def test_another_compiler_is_asked_for_itself(worker: Worker, tmp_path: Path) -> None:
    other = NO_WAYS + "import os\nos.environ['CXX'] = '/usr/bin/another-compiler'\n"
    said = ask(worker, tmp_path, other).stdout
    assert "vectors not known" in said
    assert "header not known" in said


def test_the_script_s_own_settings_count(worker: Worker, tmp_path: Path) -> None:
    said = ask(worker, tmp_path, NO_WAYS + "config.cpp.vec_isa_ok = False\n").stdout
    key_and_vectors = slice(0, 2)
    found = found_out(tmp_path, "config.cpp.vec_isa_ok = False\n").splitlines()
    assert said.splitlines()[key_and_vectors] == found[key_and_vectors]
    assert "header not known" in said  # that of kernels without vectors
