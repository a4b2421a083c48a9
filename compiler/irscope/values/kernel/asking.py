"""What running one kernel of a stored run takes, collected from the store: its text, its launch, its graph, known values.

It also tells which node and which line of the user's a line of the kernel computes.  Nothing here imports torch or triton.
"""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

from irscope.ir.launches import Launch, launches_in, returned_nodes
from irscope.protocol import Kernel, Origin, Report
from irscope.provenance import Provenance, chain
from irscope.provenance.kernel_nodes import KernelNodes
from irscope.store.store import Store
from irscope.store.value_file import DamagedValues, StoredTensor
from irscope.values.run.reading import StoredValues, stored_values
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.suggestions import did_you_mean, listed

SECONDS = 60.0
"""For the programs of a kernel: if all of them would take longer, some are run."""
MEMORY = 6_000_000_000
"""Bytes that the process may have."""
_VALUE_RUNS = 20
"""Runs of the script, the newest, among which values are looked for."""


@dataclass(frozen=True)
class KernelLine:
    """What a line of a kernel computes: nodes of the last graph, and the lines of the user's that they came from."""

    nodes: tuple[str, ...]
    origins: tuple[Origin, ...]


class StoredKernel:
    """A Triton kernel of a stored run.  Raises LookupError with a sentence for what cannot be run.

    Parameters
    ----------
    name
        The kernel's name, or the ID of its stage.
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
        self._output, self._code = output, store.stage_text(report.run, output)
        self.launches = launches_in(self._code, self.kernel.name)
        if not self.launches:
            raise LookupError(f"The output code of {self.kernel.name} does not launch it in a way that is known.")
        self.graph = self._nodes.last_graph(self.stage) or ""

    def request(self, launch: int = 0, *, values: bool = True) -> dict[str, Any]:
        """The request of `irscope.values.kernel.process`, without what the caller wants to see.

        Parameters
        ----------
        launch
            Which of the kernel's launches.
        values
            Whether values that a run of ``irscope values`` kept are taken.
        """
        if not 0 <= launch < len(self.launches):
            raise LookupError(
                f"{self.kernel.name} is launched {len(self.launches)} times; there is no launch {launch}."
            )
        run, chosen = self.report.run, self.launches[launch]
        graph = self._store.stage_text(run, self.graph) if self.graph else ""
        return {
            "kernel": self.kernel.name, "text": self.text, "graph": graph, "nodes": self._buffers(chosen),
            "arguments": [dataclasses.asdict(each) if dataclasses.is_dataclass(each) else each for each in chosen.arguments],
            "known": self._known() if values else [], "seconds": SECONDS, "memory": MEMORY, "step": False,
        }  # fmt: skip

    def _buffers(self, launch: Launch) -> dict[str, str]:
        """Buffer → the node whose value it holds."""
        rows = {str(row.get("name")): row for row in self._nodes.schedule(self._output)}
        found: dict[str, str] = {}
        for row in rows.values():
            for buffer, *_ in row.get("writes", ()):
                held = self._nodes.of_buffer(self._output, str(buffer))
                if len(held) == 1:
                    found[str(buffer)] = held[0].element.name
        data = self._store.stage_data(self.report.run, self._output)
        returned = returned_nodes(self._code)
        for call in data.get("calls", ()) if isinstance(data, dict) else ():
            names = returned.get(str(call.get("kernel")), ())
            buffers = [str(b) for node in call.get("nodes", ()) for b, *_ in rows.get(str(node), {}).get("writes", ())]
            if len(names) == len(buffers):
                found.update(zip(buffers, names, strict=True))
        return found

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


def _found(report: Report, name: str, compile: str | None) -> Kernel:
    every = [*report.kernels, *report.predicted_kernels]
    found = [each for each in every if name in (each.name, each.stage) and compile in (None, each.compile)]
    if not found:
        names = [each.name for each in every if each.language == "triton"]
        there = f"It has: {listed(names)}." if names else "It has no Triton kernels: name a GPU with irscope run --target h100."  # fmt: skip
        raise LookupError(f"Run {report.run} has no kernel {name}. {there}{did_you_mean(name, names)}")
    if found[0].language != "triton":
        raise LookupError(f"{name} is not a Triton kernel ({found[0].language}): only these are interpreted.")
    if len({each.stage for each in found}) > 1:
        raise LookupError(f"{name} names several kernels. Choose one: {listed(each.stage for each in found)}.")
    return found[0]
