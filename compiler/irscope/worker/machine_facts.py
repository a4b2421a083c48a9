"""What Inductor finds out about the machine and about torch in each process, and what is the same in all of them.

A fork of the worker finds it out while nothing runs, and the worker answers for its forks: a deep run saves two seconds.
Nothing that a script can see changes: what it sets, such as another compiler or ``vec_isa_ok``, is asked for as before.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Callable
from typing import Any

from irscope.internals.first_compile import CPP_CONFIG, TORCH_KEY, VECTOR_ISA, VECTOR_ISAS

_SECONDS = 60
Key = tuple[str, str, str, str, str]


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
