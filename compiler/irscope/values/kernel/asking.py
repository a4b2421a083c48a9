"""What running one kernel of a stored run takes, collected from the store: its text, its launch, its graph, known values.

It also tells which node and which line of the user's a line of the kernel computes.  Nothing here imports torch or triton.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from irscope.ir.launches import (
    Launch,
    concatenated,
    launches_in,
    parts_of_results,
    returned_nodes,
    unfinished,
    without_bias,
)
from irscope.pipelines.registry import stage_kind
from irscope.protocol import Kernel, Origin, Report
from irscope.provenance import Provenance, chain
from irscope.provenance.elements import Items
from irscope.provenance.kernel_nodes import KernelNodes
from irscope.provenance.statements import forms_of
from irscope.store.store import Store
from irscope.store.value_file import DamagedValues, StoredTensor
from irscope.values.kernel.chain import Chain
from irscope.values.run.reading import StoredValues, stored_values
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.suggestions import did_you_mean, listed

SECONDS = 60.0
"""For the programs of a kernel: if all of them would take longer, some are run."""
MEMORY = 6_000_000_000
"""Bytes that the process may have."""
_COPIED = re.compile(r"torch\.ops\.aten\.copy_\.default\((\w+), (\w+)\)")
"""An input of the graph, and the node whose value is written to it."""
_ALLOCATED = re.compile(r"^\s*(\w+) = empty_strided_\w+\(\(([\d, ]*)\)", re.MULTILINE)
_ANNOTATED = re.compile(r"^\s*(\w+): \"\w+\[([\d, ]*)\]", re.MULTILINE)
"""A buffer, and a node, with a shape that does not depend on inputs."""
_VALUE_RUNS = 20
"""Runs of the script, the newest, among which values are looked for."""


@dataclass(frozen=True)
class KernelLine:
    """What a line of a kernel computes: nodes of the last graph, and the lines of the user's that they came from."""

    nodes: tuple[str, ...]
    origins: tuple[Origin, ...]


class StoredKernel:
    """A Triton kernel of a stored run.  Raises LookupError with a sentence for what cannot be run.

    Args:
        name: The kernel's name, or the ID of its stage.
    """

    def __init__(self, store: Store, report: Report, name: str, compile: str | None = None) -> None:
        self._store = store
        self.kernel = _found(report, name, compile)
        self.report = report.of_target(self.kernel.target) if self.kernel.target else report
        self._thread = Provenance(store, self.report)
        self._nodes = KernelNodes(store, self.report, self._thread)
        self.stage = self.kernel.stage
        self.text = store.stage_text(report.run, self.stage)
        output = self._nodes.output_code_of(self.stage)
        if output is None:
            raise LookupError(f"Run {report.run} does not have the output code that calls {self.kernel.name}.")
        self._output, self.code = output, store.stage_text(report.run, output)
        self._all = launches_in(self.code)
        self.launches = [each for each in self._all if each.kernel == self.kernel.name]
        if not self.launches:
            raise LookupError(f"The output code of {self.kernel.name} does not launch it in a way that is known.")
        self.graph = self._nodes.last_graph(self.stage) or ""

    @property
    def named(self) -> dict[str, Any]:
        """What identifies it."""
        return {"run": self.report.run, "stage": self.stage}

    def request(self, launch: int = 0, *, values: bool = True) -> dict[str, Any]:
        """The request of `irscope.values.kernel.process`, without what the caller wants to see.

        Args:
            launch: Which of the kernel's launches.
            values: Whether values that a run of ``irscope values`` kept are taken.
        """
        if not 0 <= launch < len(self.launches):
            raise LookupError(
                f"{self.kernel.name} is launched {len(self.launches)} times; there is no launch {launch}."
            )
        chosen = self.launches[launch]
        text, nodes = self._graph_and_buffers()
        known = self._known() if values else []
        common = {
            "graph": text, "nodes": nodes, "known": known, "seconds": SECONDS, "memory": MEMORY, "step": False,
            "copied": dict(_COPIED.findall(text)), "forward": self._forward(),
        }  # fmt: skip
        before, after, partial = Chain(self._all, lambda name: self._text_of(name) or "", nodes).of(chosen)
        request = {**common, **self._one(chosen, self.text), "partial": partial}
        for key, launches in (("before", before), ("after", after)):
            request[key] = [{**common, **self._one(each, self._text_of(each.kernel) or "")} for each in launches]
        return request

    @staticmethod
    def _one(launch: Launch, text: str) -> dict[str, Any]:
        given = [dataclasses.asdict(each) if dataclasses.is_dataclass(each) else each for each in launch.arguments]
        return {"kernel": launch.kernel, "text": text, "arguments": given}

    def _forward(self) -> str:
        """The text of the forward graph, for a kernel of the backward: its nodes are inputs of the backward graph."""
        if not chain.is_of_backward(self.stage):
            return ""
        stages = next(
            (each.stages for each in self.report.compiles if self.graph in [stage.id for stage in each.stages]), ()
        )
        found = [each.id for each in stages if stage_kind(each.name).is_graph and not chain.is_backward(each) and not chain.is_shared(each)]  # fmt: skip
        return self._store.stage_text(self.report.run, found[-1]) if found else ""

    def _text_of(self, name: str) -> str | None:
        """The text of another kernel of the same output code."""
        stage = self._nodes.named(self._output, name)
        return None if stage is None else self._store.stage_text(self.report.run, stage)

    def _graph_and_buffers(self) -> tuple[str, dict[str, str]]:
        """The text of the graph, and buffer → the node whose value it holds."""
        graph = self._store.stage_text(self.report.run, self.graph) if self.graph else ""
        nodes = self._buffers(graph)
        for buffer, (whole, index) in parts_of_results(self.code).items():
            node = nodes.get(whole, "")
            if found := re.search(rf"^\s*(\w+)(?:: .*?)? = {re.escape(node)}\[{index}\]", graph, re.MULTILINE):
                nodes[buffer] = found[1]
        # What a node with several results is said to be may be another number, as the sum of squares of a variance.
        several = set(re.findall(r"^\s*(\w+) = torch\.ops\.", graph, re.MULTILINE))
        sizes = {name: _product(shape) for name, shape in _ALLOCATED.findall(self.code)}
        lengths = {name: _product(shape) for name, shape in _ANNOTATED.findall(graph)}
        nodes = {
            buffer: node for buffer, node in nodes.items()
            if node not in several and (sizes.get(buffer) or lengths.get(node)) == (lengths.get(node) or sizes.get(buffer))
        }  # fmt: skip
        for buffer in without_bias(self.code):
            graph, name = with_bias_apart(graph, nodes.get(buffer, ""), buffer)
            nodes[buffer] = name
        return graph, nodes

    def _buffers(self, graph: str) -> dict[str, str]:
        rows = {str(row.get("name")): row for row in self._nodes.schedule(self._output)}
        found: dict[str, str] = {}
        for row in rows.values():
            for buffer, *_ in row.get("writes", ()):
                held = self._nodes.of_buffer(self._output, str(buffer))
                if len(held) == 1:
                    found[str(buffer)] = held[0].element.name
        data = self._store.stage_data(self.report.run, self._output)
        returned = returned_nodes(self.code)
        for call in data.get("calls", ()) if isinstance(data, dict) else ():
            names = returned.pop(str(call.get("kernel")), ())  # the comment describes the first launch
            buffers = [str(b) for node in call.get("nodes", ()) for b, *_ in rows.get(str(node), {}).get("writes", ())]
            if len(names) == len(buffers):
                found.update((buffer, name) for buffer, name in zip(buffers, names, strict=True) if buffer != name)
        found = {buffer: found[buffer] for buffer in found.keys() - unfinished(self.code, graph, found)}
        found.update(concatenated(self.code, graph, found))
        return {**found, **prepared(self._thread.items(self.graph), rows.values(), found)} if self.graph else found

    # --- values that were recorded ----------------------------------------------------------------------------------

    def _known(self) -> list[dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for values in self._value_stages():
            for node in values.data["nodes"]:
                with contextlib.suppress(DamagedValues, KeyError, TypeError):
                    self._add(found, values, str(node["name"]), node["value"])
        return list(found.values())

    @staticmethod
    def _add(found: dict[str, dict[str, Any]], values: StoredValues, name: str, value: dict[str, Any]) -> None:
        if name in found:
            return
        if value["kind"] == "number" and isinstance(value["value"], int):
            found[name] = {"name": name, "number": value["value"]}
        elif value["kind"] == "tensor" and (stored := StoredTensor.of(value)) is not None:
            found[name] = {
                "name": name, "path": values.path(), "offset": stored.offset, "bytes": stored.bytes, "dtype": stored.dtype,
                "shape": list(stored.shape),
            }  # fmt: skip

    def _value_stages(self) -> list[StoredValues]:
        """What a value run of the same script kept of the same compile; of the graph's inputs, as a graph for another
        device has other nodes of the same names."""
        backward = chain.is_of_backward(self.stage)
        wanted = (
            self.kernel.compile.removesuffix(f"/{self.kernel.target}") if self.kernel.target else self.kernel.compile
        )
        placeholders = {item.element.name for item in self._thread.items(self.graph).items if item.op == "placeholder"} if self.graph else set()  # fmt: skip
        for summary in self._store.runs(_VALUE_RUNS, self.report.script):
            try:
                report = self._store.report(summary.run)
            except LookupError:
                continue
            stages = [each for each in stored_values(self._store, report) if each.compile == wanted]
            stages.sort(key=lambda each: chain.is_of_backward(each.stage) != backward)
            if stages:
                return [dataclasses.replace(each, data={**each.data, "nodes": [node for node in each.data["nodes"] if node["name"] in placeholders]}) for each in stages]  # fmt: skip
        return []

    # --- lines ------------------------------------------------------------------------------------------------------

    def line(self, number: int) -> KernelLine:
        """What a line of the kernel's text computes."""
        elements = self._nodes.of_lines(self.stage).get(number, ())
        origins = dict.fromkeys(origin for element in elements for origin in self._thread.origins(element)[:1])
        return KernelLine(tuple(element.name for element in elements), tuple(origins))

    def place(self, number: int) -> Origin | None:
        """The user's line of a line of the kernel; else the innermost line of the whole kernel."""
        return next(
            iter((*self.line(number).origins, *filter(None, [self.kernel.innermost]), *self.kernel.origins)), None
        )


@dataclass(frozen=True)
class ScriptKernel:
    """A kernel of a script's, with the launch that is meant (from 1)."""

    script: str
    arguments: tuple[str, ...]
    name: str
    launch: int = 1
    file: str = ""
    text: str = ""

    @property
    def named(self) -> dict[str, Any]:
        """What identifies it."""
        return {"script": self.script, "launch": self.launch}

    def request(self) -> dict[str, Any]:
        """What `irscope.values.kernel.process` is asked to run, without a graph to compare with."""
        return {
            "script": os.path.abspath(self.script), "argv": list(self.arguments), "kernel": self.name, "launch": self.launch,
            "graph": "", "nodes": {}, "known": [], "seconds": SECONDS, "memory": MEMORY, "step": False,
        }  # fmt: skip

    def line(self, number: int) -> KernelLine:
        """The line itself."""
        return KernelLine((), (Origin(self.file, number),))

    def place(self, number: int) -> Origin | None:
        """The line itself."""
        return Origin(self.file, number)


def prepared(graph: Items, rows: Iterable[Mapping[str, Any]], nodes: Mapping[str, str]) -> dict[str, str]:
    """Buffers that a kernel made for a library's call, though their origin is said to be the call's node: each holds the
    argument of that node which no other buffer of the call holds.

    Args:
        rows: What the scheduler has: what each of its nodes reads and writes.
        nodes: Buffer → node, as known.
    """
    rows, found = list(rows), dict[str, str]()
    libraries = [row for row in rows if "Extern" in str(row.get("kind")) and row.get("writes")]
    writers = {str(buffer): row for row in rows for buffer, *_ in row.get("writes", ())}
    for row in libraries:
        own = nodes.get(str(row["writes"][0][0]), "")
        read = [str(buffer) for buffer, *_ in row.get("reads", ())]
        unclear = [buffer for buffer in read if nodes.get(buffer) == own and own in graph.by_name]
        if not unclear:
            continue
        held = {nodes.get(buffer, buffer) for buffer in read if buffer not in unclear}
        arguments = [name for name in graph.by_name[own].inputs if not held & set(forms_of(graph, name))]
        for buffer in unclear:
            reads = {nodes.get(str(each), str(each)) for each, *_ in writers.get(buffer, {}).get("reads", ())}
            if argument := _argument_from(graph, arguments, reads):
                found[buffer] = argument
    return found


def _argument_from(graph: Items, arguments: Sequence[str], reads: set[str]) -> str:
    """The only one of some nodes that is computed from all that a kernel reads; empty if several are, or none."""
    known = reads & set(graph.by_name)  # a partial result of a reduction has no node
    fitting = [name for name in arguments if known and _comes_from(graph, name, known)]
    return fitting[0] if len(fitting) == 1 else ""


def _comes_from(graph: Items, name: str, sources: set[str]) -> bool:
    """Whether a node is computed from all of these, or is the one."""
    missing, waiting, seen = set(sources), [name], {name}
    while waiting and missing:
        node = waiting.pop()
        if node in missing:
            missing.discard(node)
        elif node in graph.by_name:
            waiting += [each for each in graph.by_name[node].inputs if each not in seen]
            seen.update(graph.by_name[node].inputs)
    return not missing


def _product(shape: str) -> int:
    """How many elements a printed shape has."""
    return math.prod(int(part) for part in shape.split(",") if part.strip())


def with_bias_apart(graph: str, node: str, buffer: str) -> tuple[str, str]:
    """A graph in which a convolution is computed without its bias under the name of the buffer that holds it."""
    found = re.search(
        rf"^(?P<indent>\s*){re.escape(node)}(?P<type>: \"[^\"]*?\[(?P<sizes>[^\]]*)\].*?\")? = torch\.ops\.aten\.convolution\.default\((?P<input>\w+), (?P<weight>\w+), (?P<bias>\w+), (?P<rest>.*?\))(?P<end>;.*)?$",
        graph, re.MULTILINE,
    )  # fmt: skip
    if not node or found is None or found["bias"] == "None" or not found["sizes"]:
        return graph, node
    shape = [1, -1, *([1] * (found["sizes"].count(",") - 1))]
    indent, kind = found["indent"], found["type"]
    lines = [
        f"{indent}{buffer}{kind} = torch.ops.aten.convolution.default({found['input']}, {found['weight']}, None, {found['rest']}",
        f"{indent}{buffer}_bias = torch.ops.aten.reshape.default({found['bias']}, {shape})",
        f"{indent}{node}{kind} = torch.ops.aten.add.Tensor({buffer}, {buffer}_bias)",
    ]
    return f"{graph[: found.start()]}{chr(10).join(lines)}{graph[found.end() :]}", buffer


def _found(report: Report, name: str, compile: str | None) -> Kernel:
    every = [*report.kernels, *report.predicted_kernels]
    found = [each for each in every if name in (each.name, each.stage) and compile in (None, each.compile)]
    if not found:
        names = [each.name for each in every if each.language == "triton"]
        there = f"It has: {listed(names)}." if names else "It has no Triton kernels: name a GPU with irscope run --target h100."  # fmt: skip
        raise LookupError(f"Run {report.run} has no kernel {name}. {there}{did_you_mean(name, names)}")
    if found[0].language not in ("triton", "cpp"):
        raise LookupError(f"{name} is a {found[0].language} kernel: only Triton and C++ kernels can be run.")
    if len({each.stage for each in found}) > 1:
        raise LookupError(f"{name} names several kernels. Choose one: {listed(each.stage for each in found)}.")
    return found[0]
