"""Measures the compiled programs of a script, after its end, with PyTorch's profiler.

Each program is called again with copies of the arguments of its first call, until it is warm, and then so many times as
are asked for.  If its backward was compiled in the run, each call has a backward, too, with gradients of one.  What a call
changes of its module or around it, such as a counter, is put back before the next one, so that each call goes through
the same compiled code.  The trace and what was measured beside it go into a private folder, where the driver reads them.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from irscope.capture.programs import Program, named_place_of
from irscope.internals import kernel_profile
from irscope.internals.hooks import Hook
from irscope.profiling.timeline import STEP
from irscope.protocol import Progress
from irscope.runner.call_state import CallState
from irscope.runner.cuda_graphs import GraphWatch
from irscope.runner.descriptors import silent
from irscope.runner.kept_regions import KeptRegions
from irscope.runner.regions import Regions, facts_of
from irscope.runner.rounds import READY, Measured, Rounds, modes, synchronize
from irscope.runner.step_memory import StepMemory
from irscope.usercode.user_files import is_package_file, is_user_file
from irscope.vocabulary.units import count, duration
from irscope.vocabulary.visible import bounded

TRACE = "trace.json"
Item = TypeVar("Item")
_WARM_CALLS, _WARM_SECONDS, _MOST_WARM_SECONDS = 5, 0.5, 20.0
_COPIED_BYTES = (1 << 15, 1 << 18, 1 << 22, 1 << 26)
"""Small blocks stay in caches, which are faster: a bound must hold for kernels whose data does, too."""
_MATRIX = 768
_BLOCKS, _BLOCK_SECONDS = 3, 0.2
"""Before the profiler runs, and after it again: blocks of calls without it, compiled and eager by turns."""
_LEAST_BLOCK_SECONDS, _COLD_CALLS = 0.03, 3
"""Calls of a block that are no samples: the other side has taken the caches and let the device rest."""
_MOST_SAMPLES = 600
_FAIL = "fail_on_recompile"
_MOST_PLACES, _LONGEST_PLACE, _LONGEST_REASON = 20, 100, 300
_MORE_CALLS, _MORE_SECONDS = 2, 2.0
"""This many times more calls are profiled than are asked for, if there is time, and the fastest are taken: what else
the machine does only makes calls slower."""


class Profiling(Rounds):
    """Like `Rounds`, but measures once, by itself.

    Args:
        calls: Calls of each program.
        has_backward: Whether the run compiled a backward.  Called after the script.
        say: Hears how far it is.
        compiled: A number that grows with each compile, if the memory of a step is wanted.
    """

    def __init__(
        self,
        folder: str,
        why_as_python: Callable[[object], str],
        calls: int,
        has_backward: Callable[[], bool],
        say: Callable[[Progress], None],
        compiled: Callable[[], int] | None = None,
    ) -> None:
        super().__init__(folder, why_as_python)
        self._memory = StepMemory(compiled, self._own_tensors) if compiled is not None else None
        self._sees_all_calls = compiled is not None
        self._each_calls, self._has_backward = calls, has_backward
        self._backward = self._is_over = False
        self._before: dict[int, CallState] = {}
        """The state before the first call of each program, by its ``id()``."""
        self._pace = _Pace(say)
        self._facts: list[dict[str, Any]] = []
        self._graphs = GraphWatch()
        self._regions = Regions()
        self._kept = KeptRegions(folder)
        self._left = 0

    def end_after(self, calls: int) -> None:
        """Ends the script after so many calls of the program that is called first; 0: it ends by itself."""
        self._left, self._sees_all_calls = calls, self._sees_all_calls or calls > 0

    def hooks(self) -> list[Hook]:
        """With those that have C++ kernels take part in profiles, and that hear of CUDA graphs."""
        memory = [self._memory.hook()] if self._memory is not None else []
        return [*super().hooks(), kernel_profile.hook(), self._graphs.hook(), self._regions.hook(), *memory]

    def _called(self, program: Program, arguments: Any) -> None:
        if self._left and not self._is_over and program is self._measured[0].program:
            self._left -= 1
            if not self._left:
                raise SystemExit(0)
        if self._memory is not None and not self._is_over:
            self._memory.called(program, arguments)

    def look(self) -> None:
        """Warms the programs up while the run is still captured: a compile that these calls need is seen, too."""
        if self._memory is not None:
            self._memory.end()
        self._backward, self._is_over = self._has_backward(), True
        with silent():
            for one in self._pace.each(self._measured, "warming up program", _place_words):
                self._facts.append(self._prepared_facts(one))

    def serve(self) -> None:
        """Measure each program, and say what was measured."""
        torch: Any = sys.modules.get("torch")
        self._graphs.stop()
        at_end = [CallState(one.program) for one in self._measured]
        found: dict[str, Any] = {"programs": self._facts, "peaks": None, "regions": []}
        if torch is not None and self._facts:
            with silent():
                for one, facts in zip(self._measured, self._facts, strict=True):
                    if facts["compiled_again"]:
                        self._compile_again(one, facts)
                self._profile(torch, self._facts)
                found["peaks"] = _peaks(torch) if not torch.cuda.is_initialized() else None
                found["cuda_graphs"] = self._graphs.facts(torch)
                found["regions"] = self._region_facts()
                found["memory"] = self._memory_facts()
        for state in reversed(at_end):
            state.put_back()
        self._write(READY, found)

    def _note(self, program: Program, compiled: Program, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        # A part of a program, which is traced now, or called by what is measured: nothing is copied.
        if self._is_over or sys.modules["torch"].compiler.is_compiling():
            return
        before = CallState(program)
        super()._note(program, compiled, args, kwargs)
        for one in self._measured[-1:]:
            self._before.setdefault(id(one), before)

    def _region_facts(self) -> list[dict[str, Any]]:
        """Facts of the graphs that the programs go through; last, since they are called in another order."""
        found: list[dict[str, Any]] = []
        for one, facts in zip(self._measured, self._facts, strict=True):
            if not facts["why_not"]:
                regions = self._regions.of(functools.partial(self._once, one))
                paced = self._pace.each(regions, "timing graph", lambda region: f"{region.compile} alone")
                found += facts_of(paced, functools.partial(self._alone, facts["backward"]))
        return found

    def _own_tensors(self) -> Iterator[Any]:
        for one in self._measured:
            yield from _tensors((one.args, one.kwargs))

    def _memory_facts(self) -> dict[str, Any] | None:
        """The memory of a step of the script's; of a call if the script has no step in which nothing was compiled."""
        if self._memory is None:
            return None
        for one, facts in zip(self._measured, self._facts, strict=True):
            if self._memory.facts is None and not facts["why_not"]:
                with modes(one):
                    _begin(one)
                    self._memory.begin("call", (one.args, one.kwargs))
                    try:
                        _call(one, facts["backward"])
                        synchronize()
                    finally:
                        self._memory.end()
        return self._memory.facts

    def _once(self, one: Measured) -> None:
        with modes(one):
            _begin(one)
            _call(one, False)

    def _alone(self, backward: bool, one: Measured) -> dict[str, Any]:
        """Times a graph alone; says why it cannot be called."""
        kept = self._kept.keep(one)
        try:
            with modes(one):
                has_backward = backward and one.grad and _call(one, True)
                for _ in range(_WARM_CALLS):
                    _call(one, has_backward)
            samples = _Samples(one, has_backward)
            samples.take(self._each_calls)
        except Exception as error:  # noqa: BLE001  whatever the graph raises is the answer
            return {"why_not": bounded(f"{type(error).__name__}: {error}".splitlines()[0])}
        found = samples.facts()
        return {"backward": has_backward, "samples": found["samples"], "eager_samples": found["eager_samples"], **kept}

    def _prepared_facts(self, one: Measured) -> dict[str, Any]:
        """Warms a program up; says why it cannot be measured."""
        function, file, line = named_place_of(one.program, one.args)
        is_foreign = not is_user_file(file) and not is_package_file(file) and bool(one.caller[0])
        if is_foreign:  # as of ``torch.compile(nn.Sequential(…))``: no line of the user's is in it, but one calls it
            file, line = one.caller
        facts: dict[str, Any] = {"function": function, "file": file, "line": line, "backward": False, "why_not": ""}
        facts |= {"is_foreign": is_foreign}
        facts |= {"plain_seconds": None, "samples": [], "eager_seconds": None, "put_back": [], "compiled_again": ""}
        try:
            for state in filter(None, (CallState(one.program), self._before.get(id(one)))):
                one.state = state
                if not (why := self._why_compiled(one, facts)):
                    self._warm(one, facts["backward"])
                    return facts
            facts["compiled_again"] = why
        except Exception as error:  # noqa: BLE001  whatever the program raises is the answer
            facts["why_not"] = bounded(f"{type(error).__name__}: {error}".splitlines()[0])
        return facts

    def _why_compiled(self, one: Measured, facts: dict[str, Any]) -> str:
        """Why a call in this state would be compiled; empty if the script has compiled it, and then it has been called."""
        torch: Any = sys.modules["torch"]
        one.state.put_back()
        by_script = set(one.state.changed())  # such as a global that was given another value after the first call
        try:
            with modes(one), torch.compiler.set_stance(_FAIL):
                facts["backward"] = _call(one, self._backward and one.grad)
        except RuntimeError as error:
            if _FAIL not in str(error):
                raise
            one.state.put_back()
            return _reason(str(error))
        changed = [place for place in one.state.changed() if place not in by_script]
        one.changes = bool(changed)
        facts["put_back"] = [bounded(place, _LONGEST_PLACE) for place in changed[:_MOST_PLACES]]
        return ""

    def _compile_again(self, one: Measured, facts: dict[str, Any]) -> None:
        """The script has no code for such a call.  What is compiled for it now is not the script's, so the capture is over."""
        try:
            with modes(one):
                one.state.put_back()
                _call(one, self._backward and one.grad)
            if why := self._why_compiled(one, facts):
                facts["why_not"] = f"PyTorch compiles it again on each call, which no time of a step shows: {why}"
                return
            self._warm(one, facts["backward"])
        except Exception as error:  # noqa: BLE001  whatever the program raises is the answer
            facts["why_not"] = bounded(f"{type(error).__name__}: {error}".splitlines()[0])

    def _warm(self, one: Measured, backward: bool) -> None:
        start, calls = time.perf_counter(), 0
        with modes(one):
            while calls < _WARM_CALLS or time.perf_counter() - start < _WARM_SECONDS:
                _begin(one)
                _call(one, backward)
                calls += 1
                if time.perf_counter() - start > _MOST_WARM_SECONDS:
                    return

    def _profile(self, torch: Any, facts: list[dict[str, Any]]) -> None:
        mine = [number for number, each in enumerate(facts) if not each["why_not"]]
        if not mine:
            return
        samples = {number: _Samples(self._measured[number], facts[number]["backward"]) for number in mine}
        for each in self._pace.each(samples.values(), "timing program", lambda each: "without the profiler"):
            each.take(self._each_calls)
        kinds = torch.profiler.ProfilerActivity
        activities = [kinds.CPU, *([kinds.CUDA] if torch.cuda.is_initialized() else [])]
        with torch.profiler.profile(activities=activities, acc_events=True):  # the first one has more to set up
            self._steps(torch, mine[:1], facts, 1)
        self._pace.tell("profiling", f"{count(self._each_calls, 'call')} of {count(len(mine), 'program')}")
        with torch.profiler.profile(activities=activities, acc_events=True) as profiler:
            self._steps(torch, mine, facts, self._each_calls)
        for number, each in self._pace.each(samples.items(), "timing program", lambda _: "again without the profiler"):
            each.take(self._each_calls)
            facts[number] |= each.facts()
        profiler.export_chrome_trace(os.path.join(self._folder, TRACE))

    def _steps(self, torch: Any, programs: list[int], facts: list[dict[str, Any]], calls: int) -> None:
        until = time.perf_counter() + _MORE_SECONDS
        for done in range(calls * (1 + _MORE_CALLS)):
            if done >= calls and time.perf_counter() > until:
                return
            for number in programs:
                one = self._measured[number]
                with modes(one):
                    _begin(one)
                    with torch.profiler.record_function(f"{STEP}:{number}"):
                        _call(one, facts[number]["backward"])
                        synchronize()


class _Samples:
    """Times single calls of a program without the profiler."""

    def __init__(self, one: Measured, backward: bool) -> None:
        self._one, self._backward = one, backward
        self._plain: list[float] = []
        self._eager: list[float] = []
        self._has_eager = True

    def take(self, calls: int) -> None:
        """This many in each block, or as many as there is time for."""
        with modes(self._one):
            for _ in range(_BLOCKS):
                self._block(self._one.compiled, calls, self._plain)
                if self._has_eager:
                    try:
                        self._block(self._one.program, calls, self._eager)
                    except Exception:  # noqa: BLE001  a program that needs compile has no such figure
                        self._has_eager = False

    def _block(self, program: Any, calls: int, into: list[float]) -> None:
        begin, found = time.perf_counter(), list[float]()
        while True:
            _begin(self._one)
            start = time.perf_counter()
            _call(self._one, self._backward, program)
            synchronize()
            end = time.perf_counter()
            found.append(end - start)
            enough = len(found) >= calls + _COLD_CALLS and end > begin + _LEAST_BLOCK_SECONDS
            if enough or (end > begin + _BLOCK_SECONDS and len(found) > 1):
                into += found[min(_COLD_CALLS, len(found) // 2) :]
                return

    def facts(self) -> dict[str, Any]:
        """The facts that `MeasuredProgram` has."""
        samples = self._plain[:: len(self._plain) // _MOST_SAMPLES + 1]
        return {
            "plain_seconds": _typical(self._plain),
            "samples": samples,
            "eager_seconds": _typical(self._eager) if self._has_eager else None,
            "eager_samples": self._eager[:: len(self._eager) // _MOST_SAMPLES + 1] if self._has_eager else [],
        }


class _Pace:
    """Says how far a measurement is, and when it will be done with what it is at."""

    def __init__(self, say: Callable[[Progress], None]) -> None:
        self._say = say

    def each(self, items: Iterable[Item], what: str, words: Callable[[Item], str]) -> Iterator[Item]:
        """The items; before each is said which one it is of how many, and what time is left as far as they are alike."""
        every, start = list(items), time.perf_counter()
        for done, item in enumerate(every):
            left = (time.perf_counter() - start) / done * (len(every) - done) if done else 0.0
            about = f", about {duration(left)} left" if left >= 1 else ""
            self.tell(f"{what} {done + 1} of {len(every)}", f"{words(item)}{about}")
            yield item

    def tell(self, phase: str, words: str) -> None:
        self._say(Progress(f"{phase}: {words}", phase))


def _place_words(one: Measured) -> str:
    function, file, line = named_place_of(one.program, one.args)
    return f"{function} ({os.path.basename(file)}:{line})"


def _reason(message: str) -> str:
    """The guard that failed, of what PyTorch says where it would compile; else all of its first line."""
    lines = [line.strip() for line in message.splitlines()]
    guard = next((line[2:].partition("#")[0].strip() for line in lines if line.startswith("- ")), lines[0])
    return bounded(guard, _LONGEST_REASON)


def _begin(one: Measured) -> None:
    """Makes what the call begins with what it was for the calls before."""
    if one.changes:
        one.state.put_back()


def _typical(seconds: list[float]) -> float:
    """The lower quartile: what else the machine does only makes calls slower."""
    return sorted(seconds)[len(seconds) // 4]


def _call(one: Measured, backward: bool, program: Any = None) -> bool:
    """Calls a program, with its backward if that is wanted; returns whether there was one."""
    torch: Any = sys.modules["torch"]
    if backward:
        # With CUDA graphs, gradients of the call before are in memory that this call writes to.
        torch.compiler.cudagraph_mark_step_begin()
        if isinstance(one.program, torch.nn.Module):
            one.program.zero_grad()
    result = (one.compiled if program is None else program)(*one.args, **one.kwargs)
    if not backward:
        return False
    outputs = [tensor for tensor in _tensors(result) if tensor.requires_grad and tensor.is_floating_point()]
    if outputs:
        torch.autograd.backward(outputs, [torch.ones_like(tensor) for tensor in outputs])
    return bool(outputs)


_DEEPEST = 20


def _tensors(value: Any, depth: int = 0) -> Iterator[Any]:
    """The tensors that a program returned."""
    if isinstance(value, sys.modules["torch"].Tensor):
        yield value
    elif depth < _DEEPEST and isinstance(value, dict):
        for one in list(value.values()):
            yield from _tensors(one, depth + 1)
    elif depth < _DEEPEST and isinstance(value, (tuple, list)):
        for one in value:
            yield from _tensors(one, depth + 1)


def _peaks(torch: Any) -> dict[str, float]:
    """Bytes and operations (float32) per second that this machine's CPU reached here, the most of some tries.

    A kernel may still be faster: with other instructions, or with data in a cache that is nearer.
    """
    moved = worked = 0.0
    with torch.no_grad():
        for size in _COPIED_BYTES:
            source, target = torch.ones(size // 4), torch.empty(size // 4)
            moved = max(moved, 2 * size / _least_seconds(functools.partial(target.copy_, source)))
        left, right, out = (torch.ones(_MATRIX, _MATRIX) for _ in range(3))
        worked = 2 * _MATRIX**3 / _least_seconds(lambda: torch.mm(left, right, out=out))
    return {"bandwidth": moved, "flops": worked}


def _least_seconds(work: Callable[[], object]) -> float:
    best, until = float("inf"), time.perf_counter() + 0.1
    while time.perf_counter() < until:
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return max(best, 1e-9)
