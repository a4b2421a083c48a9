"""Writes the stages of one program below the exported one."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from irscope.capture.nodes import NodeWriter
from irscope.capture.run_book import RunBook
from irscope.capture.versions import put_version
from irscope.ir.hlo import Instruction, Module, clean_hlo, parse_hlo
from irscope.pipeline_captures.export.places import user_lines
from irscope.pipeline_captures.openxla.dump import Dump, KernelDump
from irscope.pipeline_captures.openxla.lowering import node_of
from irscope.pipeline_captures.openxla.printing import Memory, Origin, PrintedHlo, printed
from irscope.pipeline_captures.openxla.texts import Lines, jaxpr_lines, stablehlo_lines
from irscope.pipelines.openxla import stages
from irscope.protocol import CaptureGap, Compile, Kernel
from irscope.protocol import Origin as Line
from irscope.protocol.report import LIBRARY
from irscope.system.commands import run_bounded
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.stages import KERNELS

_MOST = 2_000_000
"""Characters of a text; what is longer is cut."""
_MOST_LINKS = 50_000
"""Links of a kernel with the nodes that it computes, of which each line has all."""
_SECONDS = 20.0
_AT_ONCE = 100
"""Objects that are disassembled by one process; a command line has a bounded length."""
_DISASSEMBLERS = ("llvm-objdump", "objdump")


@dataclass(frozen=True)
class Above:
    """The graph that XLA's texts came from.

    Args:
        number: Number of that graph, as `NodeWriter` counts.
        origins: What is known about its nodes.
        inputs: The nodes that are inputs.
        node_of: The node that an ``op_name`` of XLA names; empty if there is none.
    """

    number: int
    origins: Mapping[str, Origin]
    inputs: Collection[str]
    node_of: Callable[[str], str] = node_of


def above_of(module: Any, nodes: NodeWriter) -> Above:
    """What `Shown` needs of a graph module."""
    inputs = {node.name for node in module.graph.nodes if node.op == "placeholder"}
    return Above(nodes.number(id(module.graph)), dict(_origins(nodes, module)), inputs)


class Shown:
    """The stages of one compile, those of its backward apart."""

    def __init__(
        self, book: RunBook, compile: Compile, nodes: NodeWriter, above: Above, backward: bool = False
    ) -> None:
        self._book, self._compile = book, compile
        self._backward, self._suffix = backward, "-backward" if backward else ""
        self._node_of = above.node_of
        self._memory = Memory(
            origins=above.origins,
            node_of=lambda op_name: op_name if op_name in above.inputs else above.node_of(op_name),
            number=nodes.new_number(),
            program=above.number,
        )

    def put_jaxpr(self, text: str) -> Lines:
        """Puts the jaxpr; gives the node of each of its lines."""
        text, lines = jaxpr_lines(text, node_of)
        self._put_text(stages.JAXPR.name, text, {"lines": lines})
        return lines

    def put_stablehlo(self, text: str, above: Lines) -> None:
        """Puts StableHLO."""
        self.put_read_stablehlo(*stablehlo_lines(text, above, node_of))

    def put_read_stablehlo(self, text: str, lines: Lines, of_scope: Mapping[str, list[str]]) -> None:
        """Puts StableHLO of which the lines are known (`stablehlo_lines`)."""
        self._memory.above.update(of_scope)
        self._put_text(stages.STABLEHLO.name, text, {"lines": lines})

    def put_dump(self, dump: Dump) -> None:
        """Puts what XLA dumped: HLO before and after its passes, the buffer assignment, and the kernels."""
        first, last = dump.text(".before_optimizations.txt"), dump.text(".cpu_after_optimizations.txt")
        if not first or not last:
            self._gap("the HLO", "XLA did not dump it")
            return
        before = printed(parse_hlo(first), self._memory, is_first=True)
        self._put_graph(stages.HLO.name, before)
        self._put_text(stages.HLO_TEXT.name, clean_hlo(first))
        self._put_passes(dump, before)
        module = parse_hlo(last)
        after = printed(module, self._memory)
        self._put_graph(stages.OPTIMIZED.name, after)
        self._put_text(stages.OPTIMIZED_TEXT.name, clean_hlo(last))
        if buffers := dump.text("-buffer-assignment.txt"):
            self._put_text(stages.BUFFERS.name, buffers)
        else:
            self._gap("the buffer assignment", "XLA did not dump it")
        self._put_kernels(dump, module, after)

    def _put_passes(self, dump: Dump, before: PrintedHlo) -> None:
        number = 0
        for one in dump.passes():
            after = printed(parse_hlo(one.text), self._memory, passed=one.passed)
            if not after.is_like(before):
                number += 1
                put_version(
                    self._book, self._compile.id, stages.OPTIMIZED, one.passed, number, before, after,
                    suffix=self._suffix, backward=self._backward,
                )  # fmt: skip
            before = after

    # --- kernels ------------------------------------------------------------------------------------------------------

    def _put_kernels(self, dump: Dump, module: Module, graph: PrintedHlo) -> None:
        dumped = list(dump.kernels())
        assembly = self._assembly(dumped)
        computed = _computed(module, dumped)
        shared = _sharing(module, [instruction for instruction in computed if instruction is not None])
        kernels = []
        for kernel, instruction in zip(dumped, computed, strict=True):
            stage = f"{self._compile.id}/{KERNELS}{self._suffix}/{kernel.name}"
            mine = [instruction, *shared.get(instruction.name, ())] if instruction else []
            parts = [part for whole in mine for part in _with_called(module, whole)]
            nodes = [graph.nodes[part.name] for part in parts if part.name in graph.nodes]
            self._put_kernel(stage, kernel, nodes, "" if kernel.object is None else assembly.get(kernel.object, ""))
            lines = tuple(sorted({line for whole in mine for line in self._lines_of_instruction(module, whole)}))
            kernels.append(Kernel(kernel.name, stages.KERNEL.language, self._compile.id, stage, lines))
        generated = {instruction.name for instruction in computed if instruction}
        self._book.put_kernels([*kernels, *self._library_kernels(module, generated)])

    def _library_kernels(self, module: Module, generated: Collection[str]) -> Iterator[Kernel]:
        stage = f"{self._compile.id}/{stages.OPTIMIZED.name}{self._suffix}"
        for instruction in module.computations[module.entry]:
            if _is_of_library(instruction) and instruction.name not in generated:
                lines = self._lines_of_instruction(module, instruction)
                yield Kernel(instruction.name, LIBRARY, self._compile.id, stage, lines)

    def _lines_of_instruction(self, module: Module, one: Instruction) -> tuple[Line, ...]:
        """The lines of an instruction and of what it calls; of one that XLA put in, those of its neighbours."""
        lines = self._lines_of(_with_called(module, one))
        return tuple(sorted(lines or self._lines_near(module, one, True) or self._lines_near(module, one, False)))

    def _lines_near(self, module: Module, one: Instruction, are_users: bool) -> dict[Line, None]:
        """The lines of the nearest instructions that have some, among its users (and theirs) or its operands."""
        entry = module.computations[module.entry]
        seen, level = {one.name}, [one]
        while level:
            names = {each.name for each in level}
            wanted = {operand for each in level for operand in each.operands}
            near = [each for each in entry if (names & set(each.operands) if are_users else each.name in wanted)]
            level = [each for each in near if each.name not in seen]
            if lines := self._lines_of(part for each in level for part in _with_called(module, each)):
                return lines
            seen |= {each.name for each in level}
        return {}

    def _lines_of(self, instructions: Iterable[Instruction]) -> dict[Line, None]:
        nodes = dict.fromkeys(self._node_of(one.op_name) for one in instructions)
        origins = [self._memory.origins[node] for node in nodes if node in self._memory.origins]
        return dict.fromkeys(line for one in origins for line in user_lines(one.frames))

    def _put_kernel(self, stage: str, one: KernelDump, nodes: list[str], assembly: str) -> None:
        """Puts a kernel with what it is lowered to; all its lines came from all nodes that it computes."""
        text = one.llvm or one.optimized
        rows = text.rstrip("\n").split("\n")
        count = max(1, min(len(nodes), _MOST_LINKS // len(rows)))
        lines = [(number, node) for number in range(1, len(rows) + 1) for node in nodes[:count]]
        self._write(stages.KERNEL.name, stage, text, {"lines": lines})
        start = next((number for number, row in enumerate(rows, 1) if row.startswith("define ")), 1)
        for kind, below in ((stages.LLVM, one.optimized), (stages.ASSEMBLY, assembly)):
            if below:
                count = below.rstrip("\n").count("\n") + 1
                data = {"lines": [(number, str(start)) for number in range(1, count + 1)]}
                self._write(kind.name, f"{stage}/{kind.name}", below, data)

    def _assembly(self, kernels: Iterable[KernelDump]) -> dict[Path, str]:
        """The assembly by object; one process for all, since its start takes longer than its work."""
        objects = {one.object: None for one in kernels if one.object is not None}
        if not objects:
            return {}
        tool = next((path for name in _DISASSEMBLERS if (path := shutil.which(name))), None)
        if tool is None:
            self._gap("the assembly of kernels", f"there is no {' or '.join(_DISASSEMBLERS)} on PATH")
            return {}
        found: dict[Path, str] = {}
        known = list(objects)
        for start in range(0, len(known), _AT_ONCE):
            found |= self._disassembled(tool, known[start : start + _AT_ONCE])
        return found

    def _disassembled(self, tool: str, objects: Sequence[Path]) -> dict[Path, str]:
        options = ["--disassemble", "--no-show-raw-insn", "--reloc", *map(str, objects)]
        try:
            done = run_bounded([tool, *options], _SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            self._gap("the assembly of kernels", f"{type(error).__name__}: {error}")
            return {}
        if done.returncode != 0:
            self._gap("the assembly of kernels", done.stderr.strip() or f"{tool} ended with {done.returncode}")
        heads = {f"{one}:": one for one in objects}
        found: dict[Path, list[str]] = {}
        rows: list[str] = []
        for row in done.stdout.split("\n"):
            name, is_head, _ = row.partition("file format ")
            if is_head and (object := heads.get(name.strip())):
                rows = found.setdefault(object, [])
            else:
                rows.append(row)
        return {one: "\n".join(rows).strip("\n") + "\n" for one, rows in found.items() if any(rows)}

    # --- writing ------------------------------------------------------------------------------------------------------

    def _put_graph(self, name: str, graph: PrintedHlo) -> None:
        self._book.put_stage(self._compile.id, name, graph.text, data=graph.data, backward=self._backward)

    def _put_text(self, name: str, text: str, data: object = None) -> None:
        self._book.put_stage(self._compile.id, name, self._bounded(name, text), data=data, backward=self._backward)

    def _write(self, name: str, id: str, text: str, data: object) -> None:
        self._book.write_stage(self._compile.id, name, id, self._bounded(name, text), data, backward=self._backward)

    def _bounded(self, name: str, text: str) -> str:
        if len(text) <= _MOST:
            return text
        self._gap(f"the end of {name}", f"it has {len(text)} characters, and irscope keeps {_MOST}")
        return text[:_MOST].rpartition("\n")[0] + "\n"

    def _gap(self, what: str, why: str) -> None:
        self._book.gap(CaptureGap(f"{what} of {self._compile.id}", why))


def _computed(module: Module, dumped: Iterable[KernelDump]) -> list[Instruction | None]:
    """The instruction that each kernel computes, by its names."""
    by_name = {
        name: instruction
        for instruction in module.instructions()
        for name in (instruction.name, instruction.name.replace(".", "_"))
    }
    return [
        next((by_name[name] for name in (kernel.name, *kernel.functions) if name in by_name), None) for kernel in dumped
    ]


def _with_called(module: Module, one: Instruction) -> list[Instruction]:
    """An instruction and those of the computations that it calls."""
    found, todo = [one], list(one.called)
    for name in todo:
        inner = module.computations.get(name, ())
        found += inner
        todo += [below for each in inner for below in each.called if below not in todo]
    return found


def _sharing(module: Module, with_kernels: Iterable[Instruction]) -> dict[str, list[Instruction]]:
    """By the name of a fusion those without a kernel that are computed by its kernel, since they are the same to XLA.

    It says nothing about that.  If there are several equal kernels, the nearest one before is taken.
    """
    own = {one.name for one in with_kernels}
    found: dict[str, list[Instruction]] = {}
    last: dict[object, str] = {}
    for one in module.computations[module.entry]:
        if one.opcode != "fusion":
            continue
        key = _computation(module, one)
        if one.name in own:
            last[key] = one.name
        elif key in last:
            found.setdefault(last[key], []).append(one)
    return found


def _computation(module: Module, one: Instruction) -> object:
    """What an instruction computes, whatever the names in it are."""
    inner = []
    for name in one.called:
        body = module.computations.get(name, [])
        place = {each.name: at for at, each in enumerate(body)}
        inner.append(tuple(
            (each.opcode, each.shape, each.literal, each.attributes, tuple(place.get(name) for name in each.operands),
             _computation(module, each))
            for each in body
        ))  # fmt: skip
    return one.shape, one.attributes, tuple(inner)


def _is_of_library(one: Instruction) -> bool:
    """Whether XLA leaves an instruction to a library, unless it made a kernel for it."""
    return one.opcode in ("custom-call", "dot", "convolution", "fft") or ("kind", "kCustom") in one.attributes


def _origins(nodes: NodeWriter, module: Any) -> Iterator[tuple[str, Origin]]:
    for node in module.graph.nodes:
        stack = node.meta.get("nn_module_stack")
        path, cls = next(reversed(stack.values())) if stack else ("", "")
        frames = nodes.frames(node.meta.get("stack_trace") or "")
        yield node.name, Origin(frames, (path, nodes.class_name(cls)) if path else None)
