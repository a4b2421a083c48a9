"""Times steps of the script itself, while it runs: from one call of the program that is called first to the next.

So a step has all that the script does in it: the optimizer, the loader of the data, Python.  Before a round and after it the
script waits in that call, and other processes have their turns.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

from irscope.capture.programs import Program, named_place_of
from irscope.runner.rounds import READY, STOP, Rounds, answer_file, round_file, synchronize
from irscope.system import processes

_WARM_STEPS, _WARM_SECONDS, _MOST_WARM_SECONDS = 5, 0.5, 60.0
"""Steps and seconds without a new stage before the first round; a script that compiles on and on is timed as it is."""
_ROUND_SECONDS, _MOST_STEPS, _POLL_SECONDS, _MOST_SECONDS = 0.25, 200, 0.005, 3600.0
_LEAST_BLOCKS = 2
_TOO_FEW = "The script has only {} steps, too few to time them. Run more: add its argument for that after --."


class Steps(Rounds):
    """Like `Rounds`, but in the script.

    Args:
        stages: How many stages were captured so far.
    """

    def __init__(self, folder: str, why_as_python: Callable[[object], str], stages: Callable[[], int]) -> None:
        super().__init__(folder, why_as_python)
        self._sees_all_calls, self._stages = True, stages
        self._first: Program | None = None
        self._facts: dict[str, Any] = {"why_no_seconds": ""}
        self._begun, self._known, self._steps = 0.0, -1, 0
        self._since: list[float] = []
        """When the steps began that had no new stage, up to the first round."""
        self._each = self._left = self._number = 0
        self._from = 0.0

    def _note(self, program: Program, compiled: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Nothing is copied: no call is made again."""
        if self._first is None and not sys.modules["torch"].compiler.is_compiling():
            self._first = program
            function, file, line = named_place_of(program, args)
            self._facts |= {"function": function, "file": file, "line": line, **facts_of(program, (args, kwargs))}

    def _called(self, program: Program, arguments: Any) -> None:
        if program is not self._first or sys.modules["torch"].compiler.is_compiling():
            return
        synchronize()
        now = _clock()
        if not self._each:
            self._warm(now)
            return
        self._left -= 1
        if self._left == 0:
            seconds = (now - self._from) / self._each
            self._write(
                answer_file(self._number),
                {"programs": [{"seconds": seconds, "memory": _memory(), "steps": self._each}]},
            )
            self._number += 1
            self._wait()

    def _warm(self, now: float) -> None:
        self._steps += 1
        self._begun = self._begun or now
        if self._stages() != self._known:
            self._known, self._since = self._stages(), []
        self._since.append(now)
        quiet, warm = now - self._since[0], len(self._since) - 1
        if (warm >= _WARM_STEPS and quiet >= _WARM_SECONDS) or (warm and now - self._begun > _MOST_WARM_SECONDS):
            durations = sorted(b - a for a, b in zip(self._since, self._since[1:], strict=False))
            typical = durations[len(durations) // 2]
            self._each = max(1, min(_MOST_STEPS, int(_ROUND_SECONDS / max(typical, 1e-6))))
            self._write(READY, {"programs": [self._facts]})
            self._wait()

    def _wait(self) -> None:
        """Until the next round is asked for; the driver ends the process when there is none."""
        path, until = os.path.join(self._folder, round_file(self._number)), time.monotonic() + _MOST_SECONDS
        while not os.path.exists(path):
            if time.monotonic() > until or os.path.exists(os.path.join(self._folder, STOP)):
                raise SystemExit(0)
            time.sleep(_POLL_SECONDS)
        self._left, self._from = self._each, _clock()

    def serve(self) -> None:
        """The script has ended: rounds that are not answered stay so."""
        if not self._each:
            none = "The script called no program that it had passed to torch.compile."
            self._facts["why_no_seconds"] = _TOO_FEW.format(self._steps) if self._first is not None else none
            self._write(READY, {"programs": [self._facts]})


def _clock() -> float:
    """Seconds, without those in which this thread could run and others had all processors, where Linux counts them.

    On a busy machine these are most of a short step, and differ from round to round.
    """
    try:
        with open("/proc/thread-self/schedstat", encoding="ascii") as counts:
            waited = int(counts.read().split()[1]) * 1e-9
    except (OSError, ValueError, IndexError):
        waited = 0.0
    return time.perf_counter() - waited


def facts_of(program: Program, inputs: Any) -> dict[str, Any]:
    """What candidates depend on: the device, whether there are gradients and convolutions, and the repeated blocks of a
    module, by their path in it."""
    torch: Any = sys.modules["torch"]
    root: Any = getattr(program, "__self__", program)
    modules: dict[str, Any] = dict(root.named_modules()) if isinstance(root, torch.nn.Module) else {}
    tensors = [*(root.parameters() if modules else ()), *_tensors(inputs, 0)]
    convolutions = (torch.nn.Conv2d, torch.nn.ConvTranspose2d)
    return {
        "device": tensors[0].device.type if tensors else "cpu",
        "grad": torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors),
        "convolutions": any(isinstance(module, convolutions) for module in modules.values()),
        "blocks": [name for name, module in modules.items() if _is_of_blocks(torch, module)][:1],
    }


def _is_of_blocks(torch: Any, module: Any) -> bool:
    """Whether it is a list of modules of one class that have parts."""
    parts = list(module) if isinstance(module, (torch.nn.ModuleList, torch.nn.Sequential)) else []
    return len(parts) >= _LEAST_BLOCKS and len({type(part) for part in parts}) == 1 and any(parts[0].children())


def _tensors(value: Any, depth: int) -> list[Any]:
    if isinstance(value, sys.modules["torch"].Tensor):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    return [tensor for part in parts for tensor in _tensors(part, depth + 1)] if depth < 5 else []


def _memory() -> int:
    """Bytes that the script's device has held at most, or that its process holds."""
    torch: Any = sys.modules["torch"]
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        return int(torch.cuda.max_memory_allocated())
    return processes.resident_bytes([os.getpid()])
