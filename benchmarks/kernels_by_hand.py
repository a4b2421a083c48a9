"""One step of a script's compiled program, each kernel timed by hand and without irscope: `line_oracle.py` runs this.

    python benchmarks/kernels_by_hand.py lines|plain SCRIPT [--backward] [--calls N] [--rounds N]

``lines`` puts a stopwatch around each call in Inductor's output code. On a CPU it is the clock before and after. On a GPU the host
waits before and after each call, so every kernel that the profiler saw in between belongs to that call. The call's lines are those of PyTorch's own
table of stacks, found by the comment above the call. Nothing is joined by names, correlation IDs or order. CUDA graphs are off here:
in a replay nobody can wait between two kernels.

``plain`` times the same calls without any stopwatch, as the script compiles them.

Both print one line of JSON: seconds of a step in each round, seconds by line (``lines``), the calls in the output code, and the kernels on the device.
"""

from __future__ import annotations

import argparse
import json
import linecache
import logging
import os
import re
import runpy
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import torch
import turns

_CALL = re.compile(r"\s*(?:\w+ = )?(?P<name>(?:extern_kernels|torch\.ops|aten|cpp_\w+|triton_\w+)(?:\.\w+)*)\(")
_HANDLES = re.compile(r"# \[Provenance debug handles\] (?P<handles>.+)")
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_LIBRARIES = os.path.dirname(os.path.dirname(os.path.abspath(torch.__file__)))
_MARK = "by-hand:"


def calls_in(code: str) -> list[str]:
    """The kernels and library calls that output code calls, in their order."""
    names = [match["name"].removesuffix(".run") for line in code.split("\n") if (match := _CALL.match(line))]
    return [name for name in names if not name.startswith("triton_helpers.")]  # those are in the texts of kernels


class Program:
    """What a script compiled first, and the arguments of its last call."""

    def __init__(self, script: str, with_graphs: bool) -> None:
        self._compile = torch.compile
        self._with_graphs = with_graphs
        self._calls: list[tuple[Any, tuple[Any, ...], dict[str, Any], bool]] = []
        torch.compile = self._compiled
        sys.argv = [script]
        sys.path.insert(0, os.path.dirname(script))
        runpy.run_path(script, run_name="__main__")
        torch.compile = self._compile
        self._made, self._args, self._options, self._grad = self._calls[-1]

    def _compiled(self, model: Any = None, **options: Any) -> Any:
        if options.get("mode") == "reduce-overhead" and not self._with_graphs:
            del options["mode"]
        if model is None:
            return lambda model: self._compiled(model, **options)
        made = self._compile(model, **options)

        def call(*args: Any, **options: Any) -> Any:
            self._calls[:] = [(made, args, options, torch.is_grad_enabled())]
            return made(*args, **options)

        if isinstance(made, torch.nn.Module):
            call.zero_grad = made.zero_grad  # type: ignore[attr-defined]
        return call

    def step(self, backward: bool) -> None:
        """One call, with a backward of ones if that is wanted."""
        with torch.set_grad_enabled(self._grad):
            if backward:
                torch.compiler.cudagraph_mark_step_begin()
                if isinstance(self._made, torch.nn.Module):
                    self._made.zero_grad()
            result = self._made(*self._args, **self._options)
            if backward:
                torch.autograd.backward([result], [torch.ones_like(result)])
        wait()


def wait() -> None:
    """Until the device has done everything."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


class Stacks(logging.Handler):
    """PyTorch's table of stacks for each output code, from its structured trace."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.by_file: dict[str, dict[str, list[str]]] = {}
        self._file = ""
        logger = logging.getLogger("torch.__trace")
        logger.setLevel(logging.DEBUG)
        logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps the file of an output code, and the table that follows it."""
        facts = getattr(record, "metadata", {})
        if "inductor_output_code" in facts:
            self._file = str(facts["inductor_output_code"].get("filename"))
        elif facts.get("artifact", {}).get("name") == "inductor_provenance_tracking_kernel_stack_traces":
            payload = getattr(record, "payload", None)
            self.by_file[self._file] = json.loads(payload) if payload else {}

    def lines(self, file: str, handles: str) -> list[str]:
        """The lines of the handles above a call: the innermost ones of the user, else of a package that is not PyTorch."""
        table = self.by_file.get(file, {})
        found: dict[str, None] = {}
        for handle in handles.split(", "):
            for stack in table.get(handle.strip(), ()):
                frames = [(match["file"], match["line"]) for match in _FRAME.finditer(stack)]
                mine = [one for one in frames if not one[0].startswith(_LIBRARIES)]
                mine = mine or [one for one in frames if not one[0].startswith(_TORCH)]
                if mine:
                    found[":".join(mine[-1])] = None
        return list(found)


class Watch:
    """Times calls in output code, by the places of the calls."""

    def __init__(self) -> None:
        self.seconds: dict[tuple[str, int], list[float]] = defaultdict(list)
        self._is_inside = False

    def around(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """A function that does the same, and is timed when output code calls it."""

        def timed(*args: Any, **options: Any) -> Any:
            frame = sys._getframe(1)
            if self._is_inside:
                return work(*args, **options)
            place = frame.f_code.co_filename, frame.f_lineno
            self._is_inside = True
            try:
                if torch.cuda.is_available():
                    wait()
                    with torch.profiler.record_function(f"{_MARK}{place[0]}:{place[1]}"):
                        result = work(*args, **options)
                        wait()
                    return result
                start = time.perf_counter()
                result = work(*args, **options)
                self.seconds[place].append(time.perf_counter() - start)
                return result
            finally:
                self._is_inside = False

        return timed


class Stand:
    """In place of an object of output code: what is called below it is timed."""

    def __init__(self, real: Any, watch: Watch) -> None:
        self._real, self._watch = real, watch

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if isinstance(found, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)) or (
            name == "ops" or isinstance(found, (torch._ops._OpNamespace,))
        ):
            return Stand(found, self._watch)
        if self._real is torch:
            return found
        return self._watch.around(found) if callable(found) else found

    def __call__(self, *args: Any, **options: Any) -> Any:
        frame = sys._getframe(1)
        place = frame.f_code.co_filename, frame.f_lineno
        start = time.perf_counter()
        if torch.cuda.is_available():
            wait()
            with torch.profiler.record_function(f"{_MARK}{place[0]}:{place[1]}"):
                result = self._real(*args, **options)
                wait()
            return result
        result = self._real(*args, **options)
        self._watch.seconds[place].append(time.perf_counter() - start)
        return result


def _modules() -> list[Any]:
    from torch._inductor.codecache import PyCodeCache

    return [one for one in PyCodeCache.modules if hasattr(one, "call") or hasattr(one, "runner")]


def _put_watches(watch: Watch) -> None:
    for module in _modules():
        names = {match["name"].partition(".")[0] for line in _text(module).split("\n") if (match := _CALL.match(line))}
        for name in names:
            real = getattr(module, name, None)
            if real is None:
                continue
            is_plain = name.startswith("cpp_") and not hasattr(real, "run")
            setattr(module, name, watch.around(real) if is_plain else Stand(real, watch))


def _text(module: Any) -> str:
    with open(module.__file__, encoding="utf-8") as file:
        return file.read()


def _device_events(profiler: Any) -> tuple[list[tuple[str, float, float]], list[tuple[str, float, float]]]:
    """Kernels and copies of the device, and the marks of the host: name, start and end in microseconds."""
    device, marks = [], []
    for event in profiler.events():
        span = event.name, event.time_range.start, event.time_range.end
        if event.device_type == torch.autograd.DeviceType.CUDA:
            if not event.name.startswith((_MARK, "ProfilerStep")):
                device.append(span)
        elif event.name.startswith(_MARK):
            marks.append(span)
    return device, marks


def by_line(program: Program, stacks: Stacks, backward: bool, calls: int) -> dict[str, Any]:
    """Seconds of each line in one step."""
    watch = Watch()
    _put_watches(watch)
    for _ in range(3):
        program.step(backward)
    watch.seconds.clear()
    kernels: Counter[str] = Counter()
    if torch.cuda.is_available():
        kinds = torch.profiler.ProfilerActivity
        with torch.profiler.profile(activities=[kinds.CPU, kinds.CUDA], acc_events=True) as profiler:
            for _ in range(calls):
                program.step(backward)
        device, marks = _device_events(profiler)
        for name, begin, end in marks:
            file, _, place = name.removeprefix(_MARK).rpartition(":")
            inside = [one for one in device if begin <= one[1] < end]
            watch.seconds[file, int(place)].append(sum(one[2] - one[1] for one in inside) / 1e6)
            kernels.update(one[0] for one in inside)
    else:
        for _ in range(calls):
            program.step(backward)
    lines: dict[str, float] = defaultdict(float)
    unowned = 0.0
    for (file, number), seconds in watch.seconds.items():
        # The lower quartile of one call, times how often a step makes it: what else the machine does only makes it slower.
        step = sorted(seconds)[len(seconds) // 4] * len(seconds) / calls
        above = next(
            (match for back in range(1, 6) if (match := _HANDLES.search(linecache.getline(file, number - back)))), None
        )
        mine = stacks.lines(file, above["handles"]) if above else []
        for line in mine:
            lines[line] += step
        unowned += 0.0 if mine else step
    ordered = sorted(lines.items(), key=lambda one: -one[1])
    return {"lines": ordered, "unowned": unowned, "kernels": {name: count / calls for name, count in kernels.items()}}


def plain(program: Program, backward: bool, calls: int, rounds: int) -> dict[str, Any]:
    """Seconds of a step without a stopwatch in it, of each round, and the kernels that run on the device."""
    found = []
    for number in range(rounds):
        if number:  # the script itself has waited for the first one
            turns.take(number)
        until = time.perf_counter() + 1.0
        while time.perf_counter() < until:
            program.step(backward)
        seconds: list[float] = []
        until = time.perf_counter() + 1.0
        while len(seconds) < 60 or time.perf_counter() < until:
            start = time.perf_counter()
            program.step(backward)
            seconds.append(time.perf_counter() - start)
        found.append(sorted(seconds)[len(seconds) // 4])
        if number < rounds - 1:
            turns.give_back(number)
    kernels: Counter[str] = Counter()
    if torch.cuda.is_available():
        kinds = torch.profiler.ProfilerActivity
        with torch.profiler.profile(activities=[kinds.CPU, kinds.CUDA], acc_events=True) as profiler:
            for _ in range(calls):
                program.step(backward)
        kernels.update(name for name, _, _ in _device_events(profiler)[0])
    return {
        "seconds": found,
        "calls": sorted(filter(None, (calls_in(_text(one)) for one in _modules()))),  # not those that autotuning made
        "kernels": {name: count / calls for name, count in kernels.items()},
    }


def main() -> None:
    """Runs the script and measures its program."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("what", choices=["lines", "plain"])
    options.add_argument("script")
    options.add_argument("--backward", action="store_true")
    options.add_argument("--calls", type=int, default=20)
    options.add_argument("--rounds", type=int, default=1, help="of the plain loop")
    given = options.parse_args()
    stacks = None
    if given.what == "lines":
        import torch._inductor.config as inductor

        inductor.trace.provenance_tracking_level = 1
        inductor.fx_graph_cache = False
        torch._functorch.config.enable_autograd_cache = False
        stacks = Stacks()
    program = Program(os.path.abspath(given.script), with_graphs=stacks is None)
    program.step(given.backward)
    if stacks is not None:
        found = by_line(program, stacks, given.backward, given.calls)
    else:
        found = plain(program, given.backward, given.calls, given.rounds)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
