"""The programs of a launch: which of them run, what is looked for while they do, and the answer that is made of it."""

from __future__ import annotations

import contextlib
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from irscope.values.kernel.compared import Compared
from irscope.values.kernel.finding import Finder, Found
from irscope.values.kernel.given import three_of
from irscope.values.kernel.interpreter import current_line, reason_of
from irscope.values.kernel.memory import LEFT_UNWRITTEN, NON_FINITE, Checks, Region
from irscope.values.kernel.native import NativeKernel
from irscope.values.kernel.recording import MOST_ELEMENTS, Recorder
from irscope.values.run.statistics import plain

_SEEDED = 32
_MOST_PROGRAMS = 1_000_000


class KernelRun(Compared):
    """A launch that runs, after the kernels that its inputs come from."""

    def __init__(self, request: dict[str, Any], given: Mapping[str, Region] | None = None) -> None:
        known = dict(given or {})
        for each in request.get("before", ()):
            known.update(KernelRun(each, known).run_whole())
        super().__init__(request, known)

    def answer(self) -> dict[str, Any]:
        """Runs what was asked for."""
        began, total = time.monotonic(), math.prod(self._grid)
        arguments, regions = self._memory()
        checks = Checks(list(regions), current_line)
        starts = self._memory_before(regions)
        programs, which = self._chosen(total)
        wanted = self._request.get("program")
        recorder = self._recorder(regions) if wanted is not None and self._request["step"] else None
        found = self._found_by(recorder, regions, checks)
        ran, problem = self._run(arguments, programs, checks, found.around)
        outputs = self._results(arguments, regions, checks, starts, ran == total) if not problem else []
        recorded = programs[next((each["number"] for each in found.rows), next(iter(checks.non_finite), 0))]
        if recorder is None and self._is_worth_recording(outputs, checks, found, problem):
            recorder = self._record(recorded)
        if recorder is not None:
            self._first_break(recorder, recorded, checks)
        stopped = "" if ran == len(programs) else ", until the time was over"
        return {
            "kernel": self._request["kernel"], "grid": list(self._grid),
            "blocks": _plain_ones(self._constants),
            "programs": {"run": ran, "of": total, "which": which + stopped, "list": [list(each) for each in programs[:64]]},
            "inputs": self._inputs, "made_above": self._made_above, "failed": problem, "outputs": outputs,
            "made": _plain_ones({name: why or None for name, why in self._graph.made.items()}), "symbols": self._graph.symbols,
            "found": [{**each, "program": list(programs[each["number"]])} for each in found.rows],
            "memory": self._contents(arguments),
            "problems": [_problem(each) for each in sorted(checks.problems.values(), key=lambda each: each.line)],
            **self._told(recorder, recorded), "seconds": round(time.monotonic() - began, 3),
        }  # fmt: skip

    def run_whole(self) -> dict[str, Region]:
        """Runs all programs without looking for problems; gives the memory of each tensor after it."""
        arguments, regions = self._memory()
        x, y, z = self._grid
        programs = [(i, j, k) for k in range(z) for j in range(y) for i in range(x)]
        ran, problem = self._run(arguments, programs, Checks(list(regions), current_line), None)
        if problem or ran < len(programs):
            raise LookupError(f"{self._request['kernel']}, which runs before it, {problem or 'takes too long'}")
        self._outputs = self._compared(arguments, regions)
        return {**self._given, **self._by_memory(regions)}

    def _completed(self, regions: Sequence[Region]) -> list[dict[str, Any]]:
        """Runs the kernels that complete what this one wrote, and compares that."""
        given, found = {**self._given, **self._by_memory(regions)}, []
        for request in self._request.get("after", ()):
            kernel = KernelRun(request, given)
            kernel._values_above = {**self._values, **self._values_above}
            given = kernel.run_whole()
            found += [{**each, "through": request["kernel"]} for each in kernel._outputs]
        return [each for each in found if each["measure"]] or found

    def _keep(self, starts: Mapping[str, Any], regions: Sequence[Region]) -> None:
        """Writes the launch as data to the file that the request names: what the kernel gets, and what it leaves."""
        by_memory = self._by_memory(regions)
        tensors = {
            name: {"memory": by_memory[each["memory"]].argument, **{key: each[key] for key in ("shape", "strides", "offset", "dtype")}}
            for name, each in self._tensors.items()
        }  # fmt: skip
        self._torch.save(
            {
                "kernel": self._head.name, "text": self._request["text"], "grid": self._grid, "constants": _plain_ones(self._constants),
                "numbers": _plain_ones(self._numbers), "tensors": tensors, "parameters": list(self._head.parameters), "before": dict(starts),
                "after": {region.argument: region.storage for region in regions},
                "stored": {region.argument: self._torch.from_numpy(region.stored) for region in regions},
                "sizes": {region.argument: region.size for region in regions},
            },
            self._request["keep"],
        )  # fmt: skip

    def _some(self) -> list[tuple[int, int, int]]:
        """The first, the last, those at the borders of the grid, and 32 that are drawn."""
        ends = [sorted({0, size - 1}) for size in self._grid]
        found = {(x, y, z) for x in ends[0] for y in ends[1] for z in ends[2]}
        drawn = random.Random(0)
        while len(found) < min(_SEEDED + 8, math.prod(self._grid)):
            found.add(tuple(drawn.randrange(size) for size in self._grid))  # type: ignore[arg-type]
        return sorted(found, key=lambda each: each[::-1])

    def _found_by(self, recorder: Recorder | None, regions: Sequence[Region], checks: Checks) -> Found:
        """What looks for the conditions and accesses that the request asks for, else what looks on."""
        found = Found(recorder)
        if wanted := self._request.get("find", ()):
            conditions = {each["line"]: each["condition"] for each in wanted if "condition" in each}
            finder = Finder(*self._given_to_recorder(regions), conditions=conditions)
            names = {each["memory"]: name for name, each in reversed(self._tensors.items())}
            own = {name: (names[each["memory"]], each["offset"]) for name, each in self._tensors.items()}
            asked = {(own[name][0], each["index"] + own[name][1]): (name, each["index"]) for each in wanted if (name := each.get("argument")) in own}  # fmt: skip
            found.look(finder, checks, asked)
        return found

    def _contents(self, arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The tensors after the programs ran, as data; the first elements of a long one."""
        rows = []
        for name, tensor in self._tensors.items() if self._request.get("elements") else ():
            flat = arguments[name].reshape(-1)[:MOST_ELEMENTS]
            numbers = [plain(each) if isinstance(each, float) else int(each) for each in flat.tolist()]
            rows.append({"parameter": name, "buffer": tensor["name"] or tensor["memory"], "shape": tensor["shape"], "dtype": tensor["dtype"], "elements": numbers})  # fmt: skip
        return rows

    def _memory_before(self, regions: Sequence[Any]) -> dict[str, Any]:
        """The memory before the kernel runs, by parameter; empty if nothing is to be kept."""
        return {region.argument: region.storage.clone() for region in regions} if self._request.get("keep") else {}

    def _results(
        self,
        arguments: dict[str, Any],
        regions: Sequence[Any],
        checks: Checks,
        starts: dict[str, Any],
        is_whole: bool,
    ) -> list[dict[str, Any]]:
        """What the kernel wrote, beside what eager mode computes; of all programs also what nobody wrote.

        Args:
            starts: The memory as it was before, to be kept with what it is now; empty if nothing is kept.
            is_whole: Whether all programs ran.
        """
        if starts and is_whole:
            self._keep(starts, regions)
        outputs = self._compared(arguments, regions)
        if is_whole:
            outputs += self._completed(regions)
            self._left_unwritten(regions, checks)
        return outputs

    def _is_worth_recording(
        self, outputs: Sequence[Mapping[str, Any]], checks: Checks, found: Found, problem: str
    ) -> bool:
        if isinstance(self._interpreter, NativeKernel) or (problem and not found.rows):
            return False
        differs = any(each["measure"] and each["measure"]["differs"] for each in outputs)
        return differs or bool(found.rows) or bool(checks.non_finite) or bool(self._request["step"])

    def _told(self, recorder: Recorder | None, program: tuple[int, int, int]) -> dict[str, Any]:
        if recorder is None:
            return {"recorded": None, "statements": [], "is_cut": False}
        statements = [each.data() for each in recorder.statements] if self._request["step"] else []
        return {"recorded": list(program), "statements": statements, "is_cut": recorder.is_cut}

    def _chosen(self, total: int) -> tuple[list[tuple[int, int, int]], str]:
        """The programs to run, and which these are: all if they take less than the limit."""
        if (wanted := self._request.get("program")) is not None:
            if any(not 0 <= index < size for index, size in zip(three_of(0, wanted), self._grid, strict=True)):
                raise LookupError(f"The grid is {self._grid}: it has no program {tuple(wanted)}.")
            return [three_of(0, wanted)], "the one that was asked for"
        limit = float(self._request["seconds"])
        if total <= _MOST_PROGRAMS and (total == 1 or self._seconds_of_first() * total <= limit):
            x, y, z = self._grid
            return [(i, j, k) for k in range(z) for j in range(y) for i in range(x)], "all"
        return self._some(), "the first, the last, those at the borders, and 32 that are drawn"

    def _run(
        self,
        arguments: dict[str, Any],
        programs: list[tuple[int, int, int]],
        checks: Checks,
        around: Callable[[Callable[[], None]], None] | None,
    ) -> tuple[int, str]:
        """How many programs ran, and why one could not; empty if all could."""
        end, ran = time.monotonic() + 2 * float(self._request["seconds"]), 0

        def go_on(number: int) -> bool:
            nonlocal ran
            if number and time.monotonic() > end:
                return False
            ran = number + 1
            return True

        try:
            self._interpreter.run({**arguments, **self._numbers}, self._grid, programs, checks, go_on, around)
        except Exception as error:  # noqa: BLE001  the program's own failure
            return ran, f"Program {programs[max(ran - 1, 0)]}, line {_line_of(error)}: {reason_of(error)}"
        return ran, ""

    def _seconds_of_first(self) -> float:
        arguments, regions = self._memory()
        began = time.monotonic()
        with contextlib.suppress(Exception):  # it fails again below, where it is told
            self._interpreter.run(
                {**arguments, **self._numbers}, self._grid, [(0, 0, 0)], Checks(regions, current_line), lambda _: True
            )
        return time.monotonic() - began

    def _given_to_recorder(self, regions: Sequence[Region]) -> tuple[Any, Any, Callable[[int], str]]:
        def words(address: int) -> str:
            for region in regions:
                if region.base <= address < region.base + max(region.storage.numel(), 1):
                    return f"{region.argument}[{(address - region.base) // region.size}]"
            return "outside of all tensors"

        return self._interpreter.tree, self._interpreter.code, words

    def _recorder(self, regions: Sequence[Region]) -> Recorder:
        return Recorder(*self._given_to_recorder(regions), elements=bool(self._request.get("elements")))

    def _record(self, program: tuple[int, int, int]) -> Recorder:
        """Runs one program once more, on fresh memory."""
        arguments, regions = self._memory()
        recorder = self._recorder(regions)
        with contextlib.suppress(Exception):  # a failure is known already
            self._interpreter.run(
                {**arguments, **self._numbers},
                self._grid,
                [program],
                Checks(regions, current_line),
                lambda _: True,
                recorder,
            )
        return recorder

    @staticmethod
    def _first_break(recorder: Recorder, program: tuple[int, int, int], checks: Checks) -> None:
        for statement in recorder.statements:
            if statement.breaks:
                name = statement.breaks[0]
                facts = statement.values[name]
                checks.line, checks.program = (lambda: statement.line), program  # noqa: B023  it returns below
                checks.tell(NON_FINITE, name, 0, facts["non_finite"], f"{facts['nan']} NaN and {facts['inf']} infinite")
                return

    def _left_unwritten(self, regions: Sequence[Region], checks: Checks) -> None:
        """Tells about memory that was empty, and that all programs together wrote in part."""
        by_argument = {region.argument: region for region in regions}
        for name, tensor in self._tensors.items():
            region = by_argument.get(name)
            if region is None or tensor["holds"] or not region.stored.any() or not math.prod(tensor["shape"]):
                continue
            missing = ~self._touched(region.stored, tensor)
            if missing.any():
                checks.line = lambda line=region.line: line  # type: ignore[misc]
                checks.tell(LEFT_UNWRITTEN, name, int(missing.ravel().argmax()), int(missing.sum()))


def _plain_ones(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if isinstance(value, int | float | str)}


def _line_of(error: BaseException) -> int:
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<kernel>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _problem(each: Any) -> dict[str, Any]:
    return {
        "kind": each.kind, "line": each.line, "program": list(each.program), "argument": each.argument, "index": each.index,
        "elements": each.elements, "message": each.message,
    }  # fmt: skip
