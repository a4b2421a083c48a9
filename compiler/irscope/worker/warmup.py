"""What the first compile of a process would import, imported in the fork server.

Which modules these are differs between versions of torch, so a child of the fork server compiles something small and
tells their names; the fork server then imports them.  It compiles nothing itself: a compile leaves counters, ids and
tables behind that a fresh process would not have, and on a machine with a GPU it asks for the device, after which CUDA
cannot be used in a fork any more.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import pkgutil
import sys
from typing import Any

import irscope.pipelines
from irscope.internals.first_compile import GRAPH_BREAK

_SECONDS = 60
_PACKAGES = ("torch", "sympy", "mpmath", "numpy")
_ADVICE = "irscope.fixing.advice"
"""A run imports it when its first graph break is described: 26 ms that the first finding would wait for."""
# With these the rehearsal would write files, or into a file of the user's.
_WRITES = ("TORCH_TRACE", "TORCH_LOGS", "TORCH_LOGS_OUT", "TORCH_COMPILE_DEBUG", "TORCH_DTRACE")


def warm_up() -> None:
    """Imports what a first compile needs; an error only costs time later."""
    for name in _rehearsed():
        if name.partition(".")[0] in _PACKAGES or name.partition(".")[0] in sys.stdlib_module_names:
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    for name in (_ADVICE, *_declared_pipelines()):
        importlib.import_module(name)
    with contextlib.suppress(Exception):
        sys.modules[
            "torch.overrides"
        ].get_overridable_functions()  # a table of 1,500 functions, the same in every process


def _declared_pipelines() -> list[str]:
    """Their modules only: which more there are depends on a run's environment."""
    return [module.name for module in pkgutil.iter_modules(irscope.pipelines.__path__, "irscope.pipelines.")]


def can_rehearse() -> bool:
    """Whether a compile of our own would leave nothing behind."""
    return not any(os.environ.get(name) for name in _WRITES)


def _rehearsed() -> list[str]:
    """The modules that a child imports while it compiles."""
    if not can_rehearse():
        return []
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            before = set(sys.modules)
            rehearse()
            os.write(write, "\n".join(name for name in sys.modules if name not in before).encode())
        os._exit(0)
    os.close(write)
    names = b""
    with contextlib.suppress(OSError):
        while data := os.read(read, 1 << 16):
            names += data
    os.close(read)
    os.waitpid(pid, 0)
    return names.decode().split()


def rehearse() -> None:
    """Compiles something small.  Only for a process that does nothing else: it ends after a minute."""
    import signal

    signal.alarm(_SECONDS)  # it ends a compile that hangs, and with it this process
    for name in ("torch.__trace", "torch"):
        logging.getLogger(name).handlers.clear()
    with contextlib.suppress(Exception):
        _compile_something()


def _compile_something() -> None:
    """A break, sizes that change, a module, a gradient and an optimizer, with the eager backend."""
    torch: Any = sys.modules["torch"]
    graph_break = GRAPH_BREAK.get()
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LayerNorm(4), torch.nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x: Any) -> Any:
        y = model(x) @ x.T
        graph_break()
        return torch.nn.functional.softmax(y, -1).sum()

    compiled = torch.compile(step, backend="eager")
    for size in (4, 5):
        compiled(torch.ones(size, 4)).backward()
        optimizer.step()
    with torch.no_grad():
        compiled(torch.ones(6, 4))
