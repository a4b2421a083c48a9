"""``python boot.py kernel REQUEST ANSWER`` in the user's interpreter: runs kernels, as a file of JSON asks, and answers
in another.

Nothing of the store is executed but the kernel's own text, which `kernel_text` has checked.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from irscope.ir.launches import KernelHead, accesses_of, head_of
from irscope.values.check.measuring import measure
from irscope.values.kernel.eager import EagerGraph
from irscope.values.kernel.finding import Finder, Found
from irscope.values.kernel.interpreter import Interpreter, current_line, reason_of
from irscope.values.kernel.kernel_text import NotAKernel
from irscope.values.kernel.launched import launch_of
from irscope.values.kernel.memory import LEFT_UNWRITTEN, NON_FINITE, Checks, Region
from irscope.values.kernel.native import NativeKernel
from irscope.values.kernel.recording import MOST_ELEMENTS, Recorder
from irscope.values.run.statistics import plain

_DTYPES = {
    "fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "i64": "int64", "i32": "int32", "i16": "int16",
    "i8": "int8", "i1": "bool", "u1": "bool", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "fp8e4nv": "float8_e4m3fn", "fp8e5": "float8_e5m2", "fp8e4b8": "float8_e4m3fnuz", "fp8e5b16": "float8_e5m2fnuz",
}  # fmt: skip
_ROUNDING = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
_SEEDED = 32
_LANES = 1024
"""Elements of a block that the run's configuration does not tell."""
_MOST_PROGRAMS = 1_000_000
_MOST_BYTES = 1 << 30
"""All tensors of one launch together, at most."""


def main() -> None:
    """Answers requests; exits with 0 whatever the kernels do."""
    request_path, answer_path = sys.argv[2:4]
    with open(request_path, encoding="utf-8") as file:
        request = json.load(file)
    os.environ["TRITON_INTERPRET"] = "1"
    if int(request["memory"]):  # a sanitizer reserves more than there is
        _limit_memory(int(request["memory"]))
    with contextlib.redirect_stdout(sys.stderr):
        answer = [_answer(each) for each in request["requests"]]
    with open(answer_path, "w", encoding="utf-8") as file:
        json.dump(answer, file)


def _limit_memory(most: int) -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    try:
        import numpy  # noqa: F401
        import torch

        version = ""
        if "library" not in request:
            import triton

            version = triton.__version__
    except ImportError as error:
        return {"missing": error.name or "triton"}
    with contextlib.suppress(ImportError):
        import torch._inductor.inductor_prims  # noqa: F401  operators that only Inductor's graphs have
    try:
        given: Mapping[str, Region] = {}
        if "script" in request:
            request, given = launch_of(request)
        own = {key: request[key] for key in ("file", "text") if "script" in request}
        return {**_Kernel(request, given).answer(), **own, "triton": version}
    except NotAKernel as error:
        return {"error": str(error)}
    except MemoryError:
        return {"error": f"The kernel needs more than {request['memory']} bytes."}
    except Exception as error:
        if os.environ.get("IRSCOPE_DEBUG"):
            raise
        return {"error": reason_of(error)}


class _Kernel:
    """One launch of a kernel."""

    def __init__(self, request: dict[str, Any], given: Mapping[str, Region] | None = None) -> None:
        self._given = dict(given or {})
        for each in request.get("before", ()):
            self._given.update(_Kernel(each, self._given).run_whole())
        self._torch: Any = sys.modules["torch"]
        self._np: Any = sys.modules["numpy"]
        self._torch.set_num_threads(1)
        self._request = request
        self._head = head_of(request["text"], request["kernel"])
        self._nodes: Mapping[str, str] = request["nodes"]
        self._known = {each["name"]: self._stored(each) for each in request["known"]}
        forward = EagerGraph(request["forward"], self._known) if request.get("forward") else None
        self._graph = EagerGraph(request["graph"], self._known, forward=forward)
        self._blocks = {**blocks_of(self._head), **request.get("blocks", {})}
        given, self._grid_arguments = self._head.named(request["arguments"], self._blocks)
        self._tensors = {
            name: each for name, each in given.items() if isinstance(each, dict) and self._is_pointer(name)
        }
        self._numbers = {name: self._number(each) for name, each in given.items() if name not in self._tensors}
        self._constants = self._compile_time(self._numbers)
        self._inputs: list[dict[str, Any]] = []
        self._values: dict[str, Any] = {}
        self._starts = {name: self._start(name, tensor) for name, tensor in self._tensors.items()}
        self._grid = self._grid_of()
        self._interpreter: Interpreter | NativeKernel = (
            NativeKernel(request["library"], self._head.parameters)
            if self._head.heuristic == "cpp"
            else Interpreter(request["text"], self._head.name, self._constants)
        )

    def _is_pointer(self, name: str) -> bool:
        return str(self._head.signature.get(name, "*")).startswith("*")

    def _stored(self, each: dict[str, Any]) -> Any:
        if "number" in each:
            return each["number"]
        dtype = getattr(self._torch, each["dtype"])
        if not each["bytes"]:
            return self._torch.empty(each["shape"], dtype=dtype)
        with open(each["path"], "rb") as file:
            file.seek(each["offset"])
            data = bytearray(file.read(each["bytes"]))
        return self._torch.frombuffer(data, dtype=dtype).reshape(each["shape"])

    # --- arguments --------------------------------------------------------------------------------------------------

    def _number(self, given: Any) -> Any:
        if isinstance(given, dict):  # the graph's input that is a size
            return int(self._graph.value(given["memory"]))
        if not isinstance(given, str):
            return given
        with contextlib.suppress(ValueError):
            return float(given)
        return (
            {"True": True, "False": False, "None": None}.get(given)
            if given in ("True", "False", "None")
            else self._graph.symbol(given)
        )

    def _compile_time(self, numbers: Mapping[str, Any]) -> dict[str, Any]:
        found = dict(self._blocks)
        for name, value in self._head.constants.items():
            if name in self._head.parameters:
                found.setdefault(name, value)
        found.update({name: each for name, each in numbers.items() if name in self._head.constexprs})
        missing = [name for name in self._head.parameters if name in self._head.constexprs and name not in found]
        if missing:
            raise LookupError(f"The run does not tell the compile-time constants {', '.join(missing)}.")
        return found

    def _start(self, name: str, tensor: dict[str, Any]) -> Any:
        """The value of a tensor when the kernel starts; None if its memory holds nothing."""
        pointer = str(self._head.signature.get(name, "")).lstrip("*").partition(",")[0]
        dtype = tensor["dtype"] = tensor["dtype"] or _DTYPES.get(pointer, "float32")
        holds = tensor["holds"]
        node = self._nodes.get(holds, holds if holds in self._graph.names else "")
        value, how = None, "empty"
        access = accesses_of(self._request["text"])
        if tensor["memory"] in self._given and tensor["shape"] is not None and (not node or name in access.added_to):
            self._complete(name, tensor, None)
            self._tell_input(name, tensor, node, "by kernels")
            return None
        if holds == "0":
            how = "zeros"
        elif holds:
            value, how = self._value(node)
        self._complete(name, tensor, value)
        if how not in ("empty", "zeros") and (value is None or value.numel() != _count(tensor["shape"])):
            value, how = self._graph.made_tensor(node or holds, tensor["shape"], None, dtype), "made"
        if value is not None:
            value = self._in_form(value.to(getattr(self._torch, dtype)), tensor)
            if node:
                self._values[node] = self._graph.values.get(node, value)
        self._tell_input(name, tensor, node, how)
        return value

    def _tell_input(self, name: str, tensor: Mapping[str, Any], node: str, how: str) -> None:
        buffer = tensor["name"] or tensor["memory"]
        form = {"shape": tensor["shape"], "dtype": tensor["dtype"]}
        self._inputs.append({"parameter": name, "buffer": buffer, "node": node, "value": how, **form})

    def _in_form(self, value: Any, tensor: dict[str, Any]) -> Any:
        """A buffer's value in the shape in which the launch sees its memory, which may have another order of dimensions."""
        if not tensor.get("held"):
            return value.reshape(tensor["shape"])
        shape, strides = ([each if isinstance(each, int) else self._graph.symbol(each) for each in part] for part in tensor["held"][:2])  # fmt: skip
        ends = [sum((n - 1) * s for n, s in zip(*form, strict=True)) + 1 for form in ((shape, strides), (tensor["shape"], tensor["strides"]))]  # fmt: skip
        if value.numel() != _count(shape) or tensor["offset"] != self._number(tensor["held"][2]) or not value.numel():
            return value.reshape(tensor["shape"])
        memory = self._torch.zeros(max(ends), dtype=value.dtype)
        memory.as_strided(shape, strides).copy_(value.reshape(shape))
        return memory.as_strided(tensor["shape"], tensor["strides"])

    def _complete(self, name: str, tensor: dict[str, Any], value: Any) -> None:
        """Gives a tensor the sizes that the output code has as expressions, or not at all."""
        if tensor["shape"] is None:
            if value is None:
                raise LookupError(f"The shape of {tensor['name'] or name} is not in the output code.")
            tensor["shape"], tensor["strides"] = list(value.shape), list(value.stride())
        for key in ("shape", "strides"):
            tensor[key] = [each if isinstance(each, int) else self._graph.symbol(each) for each in tensor[key]]
        tensor["offset"] = self._number(tensor["offset"])

    def _value(self, node: str) -> tuple[Any, str]:
        if not node:
            return None, "made"
        before = set(self._graph.made)
        try:
            value = self._graph.value(node)
        except LookupError:
            return None, "made"
        if not isinstance(value, self._torch.Tensor):
            return None, "made"
        made = set(self._graph.made) - before
        if node in self._known and node not in self._graph.made:
            return value, "recorded"
        if node in self._graph.made:
            return value, "made"
        self._made_above |= bool(made)
        return value, "computed"

    _values_above: Mapping[str, Any] = {}
    """Values of nodes that kernels before read."""
    _outputs: Sequence[dict[str, Any]] = ()
    """What `run_whole` compared."""
    _made_above = False
    """Whether anything that the inputs were computed from was made."""

    def _memory(self) -> tuple[dict[str, Any], list[Region]]:
        """Fresh tensors by parameter, and their regions."""
        torch, np = self._torch, self._np
        sizes: dict[str, int] = {}
        for tensor in self._tensors.values():
            end = tensor["offset"] + 1 + sum((size - 1) * stride for size, stride in zip(tensor["shape"], tensor["strides"], strict=True))  # fmt: skip
            width = getattr(torch, tensor["dtype"]).itemsize
            sizes[tensor["memory"]] = max(
                sizes.get(tensor["memory"], 0), (end if _count(tensor["shape"]) else 0) * width
            )
        if sum(sizes.values()) > _MOST_BYTES:
            raise LookupError(f"The tensors of this launch have {sum(sizes.values()):,} bytes, more than the {_MOST_BYTES:,} that are run here.")  # fmt: skip
        regions: dict[str, Region] = {}
        arguments: dict[str, Any] = {}
        for name, tensor in self._tensors.items():
            memory, dtype = tensor["memory"], getattr(torch, tensor["dtype"])
            if memory not in regions:
                storage = torch.full((max(sizes[memory], 1),), 255, dtype=torch.uint8)[: sizes[memory]]
                count = sizes[memory] // dtype.itemsize
                regions[memory] = Region(
                    name, storage, dtype.itemsize, np.zeros(count, bool), np.full(count, -1, np.int32), np.full(count, -1, np.int32),
                    np.zeros(count, bool),
                )  # fmt: skip
                self._take_over(memory, regions[memory])
            region = regions[memory]
            whole = (
                region.storage.view(dtype)
                if region.storage.numel() % dtype.itemsize == 0
                else region.storage[:0].view(dtype)
            )
            view = (
                whole.as_strided(tensor["shape"], tensor["strides"], tensor["offset"])
                if _count(tensor["shape"])
                else whole[:0]
            )
            if (start := self._starts[name]) is not None:
                view.copy_(start)
                self._touched(region.written, tensor)[...] = True
            elif tensor["holds"] == "0":
                region.storage.zero_()
                region.written[:] = True
            arguments[name] = view
        return arguments, list(regions.values())

    def _take_over(self, memory: str, region: Region) -> None:
        """Gives a memory what the kernels before left in it."""
        if (before := self._given.get(memory)) is None:
            return
        count = min(before.storage.numel(), region.storage.numel())
        region.storage[:count] = before.storage[:count]
        known = self._np.repeat(before.written, before.size)[:count][:: region.size]
        region.written[: len(known)] |= known[: len(region.written)]

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
            kernel = _Kernel(request, given)
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

    def _by_memory(self, regions: Sequence[Region]) -> dict[str, Region]:
        return dict(zip(dict.fromkeys(each["memory"] for each in self._tensors.values()), regions, strict=False))

    def _touched(self, flags: Any, tensor: dict[str, Any]) -> Any:
        """The flags of the elements of a tensor, in its shape."""
        strides = [each * flags.itemsize for each in tensor["strides"]]
        return self._np.lib.stride_tricks.as_strided(flags[tensor["offset"] :], tensor["shape"], strides)

    # --- programs ---------------------------------------------------------------------------------------------------

    def _grid_of(self) -> tuple[int, int, int]:
        if self._head.heuristic == "cpp":
            return 1, 1, 1
        if self._request.get("grid"):
            return _three(self._request["grid"])
        if self._grid_arguments:
            return _three([self._number(each) for each in self._grid_arguments])
        from torch._inductor.runtime import triton_heuristics

        if "grid_type" not in self._head.meta:
            raise LookupError("The run does not tell the kernel's grid: give it with --grid.")
        grid = triton_heuristics.GridExpr.from_meta(dict(self._head.meta), dict(self._blocks))
        numbers = {name: each for name, each in {**self._constants, **self._numbers}.items() if isinstance(each, int)}
        return _three(grid.eval_slow(numbers))

    def _some(self) -> list[tuple[int, int, int]]:
        """The first, the last, those at the borders of the grid, and 32 that are drawn."""
        ends = [sorted({0, size - 1}) for size in self._grid]
        found = {(x, y, z) for x in ends[0] for y in ends[1] for z in ends[2]}
        drawn = random.Random(0)
        while len(found) < min(_SEEDED + 8, _count(self._grid)):
            found.add(tuple(drawn.randrange(size) for size in self._grid))  # type: ignore[arg-type]
        return sorted(found, key=lambda each: each[::-1])

    def answer(self) -> dict[str, Any]:
        """Runs what was asked for."""
        began, total = time.monotonic(), _count(self._grid)
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

        Parameters
        ----------
        starts
            The memory as it was before, to be kept with what it is now; empty if nothing is kept.
        is_whole
            Whether all programs ran.
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
            if any(not 0 <= index < size for index, size in zip(_program(wanted), self._grid, strict=True)):
                raise LookupError(f"The grid is {self._grid}: it has no program {tuple(wanted)}.")
            return [_program(wanted)], "the one that was asked for"
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
            if region is None or tensor["holds"] or not region.stored.any() or not _count(tensor["shape"]):
                continue
            missing = ~self._touched(region.stored, tensor)
            if missing.any():
                checks.line = lambda line=region.line: line  # type: ignore[misc]
                checks.tell(LEFT_UNWRITTEN, name, int(missing.ravel().argmax()), int(missing.sum()))

    # --- comparing --------------------------------------------------------------------------------------------------

    def _compared(self, arguments: Mapping[str, Any], regions: Sequence[Region]) -> list[dict[str, Any]]:
        by_argument = {region.argument: region for region in regions}
        found = []
        for name, tensor in self._tensors.items():
            region = by_argument.get(name)
            if region is None or not region.stored.any() or not _count(tensor["shape"]):
                continue
            if tensor["name"] in self._request.get("partial", ()):
                continue
            node = self._request.get("copied", {}).get(tensor["name"]) or self._nodes.get(tensor["name"], "")
            stored = self._torch.from_numpy(self._touched(region.stored, tensor).copy())
            row = {"parameter": name, "buffer": tensor["name"], "node": node, "elements": int(stored.sum()), "of": _count(tensor["shape"]), "measure": None, "why": ""}  # fmt: skip
            try:
                row["measure"] = self._measured(node, arguments[name], stored)
            except LookupError as error:
                row["why"] = str(error.args[0] if error.args else error)
            found.append(row)
        return found

    def _check_comparable(self, node: str) -> None:
        """Raises LookupError if eager mode has no counterpart of what the kernel computes from what it got."""
        if "script" in self._request:
            raise LookupError("nothing in eager mode is its counterpart; it was checked only")
        if not node or node not in self._graph.names:
            raise LookupError("no node of the graph is known for it")
        read = accesses_of(self._request["text"]).read
        for given in self._inputs:
            if given["value"] == "made" and given["node"] not in self._graph.names and given["parameter"] in read:
                buffer = given["buffer"]
                raise LookupError(
                    f"{buffer}, which the kernel reads, is not a node of the graph, so its value was made"
                )

    def _measured(self, node: str, computed: Any, stored: Any) -> dict[str, Any]:
        self._check_comparable(node)
        eager = self._graph.value(node)
        if why := self._graph.made.get(node):
            raise LookupError(f"{node} cannot be computed in eager mode: {why}")
        # From what the kernel read on, so that only its own errors count.
        start = {name: value for name, value in {**self._values, **self._values_above}.items() if name != node or name in self._graph.inputs}  # fmt: skip
        wide = EagerGraph(self._request["graph"], start, is_wide=True)
        dtype = str(eager.dtype).removeprefix("torch.")
        noisy = EagerGraph(self._request["graph"], start, is_wide=True, noise=_ROUNDING.get(dtype, 0.0))
        wide.symbols.update(self._graph.symbols)
        noisy.symbols.update(self._graph.symbols)
        exact, disturbed = wide.value(node), noisy.value(node)
        if any(name not in self._graph.made for name in wide.made):
            exact, disturbed = eager, eager  # an operator without a float64 form
        if computed.numel() != eager.numel():
            raise LookupError(f"{node} has another shape than the buffer: {list(eager.shape)}")
        shape = eager.shape
        own = self._torch.where(stored.reshape(shape), computed.reshape(shape).to(eager.dtype), eager)
        found = measure(own, eager, exact.reshape(shape), disturbed.reshape(shape))
        if found is None:
            raise LookupError("the two cannot be compared")
        difference = (own.double() - eager.double()).abs()
        return {**found.data(), "differs": found.differs, "to_eager": plain(float(difference[difference.isfinite()].max())) if difference.isfinite().any() else None}  # fmt: skip


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


def _three(sizes: Sequence[int]) -> tuple[int, int, int]:
    """The sizes of a grid; those that are left out are 1."""
    x, y, z = (*sizes, 1, 1)[:3]
    return int(x), int(y), int(z)


def _program(indices: Sequence[int]) -> tuple[int, int, int]:
    """The indices of a program; those that are left out are 0."""
    x, y, z = (*indices, 0, 0)[:3]
    return int(x), int(y), int(z)


def _count(sizes: Sequence[int]) -> int:
    found = 1
    for size in sizes:
        found *= size
    return found


def blocks_of(head: KernelHead) -> dict[str, Any]:
    """The sizes of a kernel's blocks: what its decorators tell, else the powers of 2 that hold about 1,024 elements."""
    if head.configs:
        return dict(head.configs[0])
    hints = {name.rstrip("_").upper(): size for name, size in head.size_hints.items() if isinstance(size, int)}
    found: dict[str, Any] = {}
    left = _LANES
    if head.heuristic == "persistent_reduction":
        left = max(1, left // max([size for name, size in hints.items() if name.startswith("R")], default=1))
    for name in sorted(head.blocks, key=lambda each: (not each.startswith("R"), each)):
        if name in head.meta:
            found[name] = head.meta[name]
        elif "BLOCK" not in name:
            found[name] = 1
        else:
            dim = name.removesuffix("BLOCK").rstrip("_") or "R"
            others = len([each for each in head.blocks if each[0] in "YZ"]) if dim[0] in "XYZ" else 0
            most = left if not others else 32
            found[name] = max(1, min(hints.get(dim, hints.get(dim.lower(), most)), most))
            left = max(1, left // found[name]) if dim[0] == "R" else left
    return found
