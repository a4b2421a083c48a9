"""What Inductor finds out about the machine and about torch in each process, and what is the same in all of them.

A fork of the worker finds it out while nothing runs, and the worker answers for its forks: a deep run saves two seconds.
Nothing that a script can see changes: what it sets, such as another compiler or ``vec_isa_ok``, is asked for as before.
The worker itself registers the patterns of Inductor's passes, which are objects in memory: a third of a small deep run.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from irscope.internals.first_compile import (
    ATTENTION_PATTERNS,
    CPP_CONFIG,
    DESCRIBED,
    FAKE_INIT,
    KERNEL_LIBRARY,
    PADDING_PATTERNS,
    PRECOMPILED_HEADER,
    TORCH_KEY,
    VECTOR_ISA,
    VECTOR_ISAS,
)
from irscope.internals.modes import same_counters
from irscope.protocol import DEFAULT_PIPELINE
from irscope.worker import cuda

_SECONDS = 60
_READ_BY_COMPILERS = ("PATH", "CXX", "CPATH", "CPLUS_INCLUDE_PATH", "GCC_EXEC_PREFIX", "COMPILER_PATH")
Key = tuple[str, str, str, str, str]


def prepare_deep_runs() -> None:
    """Imports and registers, here, what each deep run in a fork would."""
    with contextlib.suppress(Exception):
        pipeline = importlib.import_module(f"irscope.pipelines.{DEFAULT_PIPELINE}").PIPELINE
        importlib.import_module(pipeline.capture.partition(":")[0])
    _register_patterns()


def _register_patterns() -> None:
    """Does for forks, here, what Inductor does in a process before its first pass on a graph.

    Not where there may be an accelerator: patterns are made for the device of the first compile, which is not known yet.
    """
    with contextlib.suppress(Exception):
        if not cuda.is_without_accelerators():
            return
        names = (PADDING_PATTERNS, ATTENTION_PATTERNS)
        for name in names:
            importlib.import_module(name.module)
        register = [name.get() for name in names]

        def on_device(input_device: Any = None) -> None:
            for each in register:
                each(*[input_device][: len(inspect.signature(each).parameters)])

        described = DESCRIBED.get()
        with same_counters():
            FAKE_INIT.get()(on_device)(sys.modules["torch"].device("cpu"))
        setattr(sys.modules[DESCRIBED.module], DESCRIBED.name, described)


def find_out() -> bytes:
    """The facts; for a process that does nothing else: it ends after a minute."""
    signal.alarm(_SECONDS)  # a compiler that hangs
    facts: dict[str, Any] = {"builds": []}
    with contextlib.suppress(Exception):
        facts["torch_key"] = TORCH_KEY.get()().hex()
    with contextlib.suppress(Exception):
        isa = VECTOR_ISA.get()
        check = isa.check_build

        def recorded(self: Any, code: str) -> bool:
            key = _key(self, code)  # before: the check may change the flags
            if good := bool(check(self, code)):
                facts["builds"].append(key)
            return good

        isa.check_build = recorded
        VECTOR_ISAS.get()()
    with contextlib.suppress(Exception):
        facts["headers"] = _headers()
    return json.dumps(facts).encode()


def learn(told: bytes) -> None:
    """Answers with these facts from now on, here and in forks.  What was not told is found out by each run itself."""
    with contextlib.suppress(Exception):
        facts = json.loads(told)
        with contextlib.suppress(Exception):
            TORCH_KEY.get().set(bytes.fromhex(facts["torch_key"]))
        builds = {tuple(key) for key in facts["builds"]}
        isa = VECTOR_ISA.get()
        isa.check_build = _remembered(isa.check_build, builds)
        headers = {tuple(key): path for *key, path in facts.get("headers", [])}
        make = PRECOMPILED_HEADER.get()
        setattr(sys.modules[PRECOMPILED_HEADER.module], PRECOMPILED_HEADER.name, _known_header(make, headers))


def _headers() -> list[tuple[str, ...]]:
    """Compiles the header that kernels begin with, if it is not there yet; its parts, and its path."""
    made = []
    make = PRECOMPILED_HEADER.get()

    def recorded(*command: Any, **options: Any) -> str:
        path: str = make(*command, **options)
        made.append((*_header_key(command, options), path))
        return path

    setattr(sys.modules[PRECOMPILED_HEADER.module], PRECOMPILED_HEADER.name, recorded)
    with tempfile.TemporaryDirectory() as folder:  # for the text of a kernel, which is not compiled
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        KERNEL_LIBRARY.get().load_async("", submit_fn=lambda compile: None)
    return made


def _known_header(make: Callable[..., str], headers: dict[tuple[str, ...], str]) -> Callable[..., str]:
    """The same function, which is passed over for a header that is there."""

    @functools.wraps(make)
    def precompile_header(*command: Any, **options: Any) -> str:
        with contextlib.suppress(Exception):
            path = headers.get(_header_key(command, options), "")
            if path and os.path.exists(path) and any(os.path.exists(path + ending) for ending in (".gch", ".pch")):
                return path
        return make(*command, **options)

    return precompile_header


def _header_key(command: tuple[Any, ...], options: dict[str, Any]) -> tuple[str, ...]:
    """What the header depends on: its name and flags, and what compilers read of the environment."""
    flags = [f"{name}={value}" for name, value in sorted(options.items())]
    return *map(str, command), *flags, *(os.environ.get(name, "") for name in _READ_BY_COMPILERS)


def _remembered(check: Callable[[Any, str], bool], builds: set[Key]) -> Callable[[Any, str], bool]:
    """The same check, which is passed over for what has been built.  What failed is tried again: a disk may be full."""

    def check_build(self: Any, code: str) -> bool:
        with contextlib.suppress(Exception):
            if _key(self, code) in builds:
                return True
        return check(self, code)

    return check_build


def _key(isa: Any, code: str) -> Key:
    """What the answer depends on: the instruction set, its flags, what is compiled, and with which compiler."""
    return type(isa).__name__, isa.build_arch_flags(), code, os.environ.get("CXX", ""), repr(CPP_CONFIG.get().cxx)
