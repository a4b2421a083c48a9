"""Which nodes of the last graph the lines, the calls and the buffers of generated code stand for."""

from __future__ import annotations

from typing import Any

from irscope.pipelines.registry import stage_kind
from irscope.protocol import Report
from irscope.provenance import Element, Provenance, chain
from irscope.provenance.elements import Item, Items
from irscope.provenance.statements import arguments_in, arguments_of, forms_of, nodes_of_statements
from irscope.store.store import Store
from irscope.vocabulary.stages import KERNELS, Role


class KernelNodes:
    """The generated code of one run."""

    def __init__(self, store: Store, report: Report, thread: Provenance) -> None:
        self._store, self._report, self._thread = store, report, thread
        self._stages = {stage.id: stage for compile in report.compiles for stage in compile.stages}
        self._compile_of = {stage.id: compile.id for compile in report.compiles for stage in compile.stages}
        self._stages_of = {stage.id: compile.stages for compile in report.compiles for stage in compile.stages}
        self._statements: dict[str, dict[int, tuple[Element, ...]]] = {}
        self._calls_in: dict[str, dict[str, list[str]]] = {}
        self._buffers_in: dict[str, dict[str, tuple[str, ...]]] = {}
        self._text_of_graph = ("", "")

    def of_lines(self, kernel: str) -> dict[int, tuple[Element, ...]]:
        """Line of a kernel's text → the nodes of the last graph that it computes; its first line has all of them."""
        if kernel not in self._statements:
            try:
                self._statements[kernel] = self._match(kernel)
            except (LookupError, TypeError, ValueError, AttributeError):
                self._statements[kernel] = {}  # data of another version, or from elsewhere
        return self._statements[kernel]

    def _match(self, kernel: str) -> dict[int, tuple[Element, ...]]:
        output, graph = self.output_code_of(kernel), self.last_graph(kernel)
        if output is None or graph is None:
            return {}
        run, name = self._report.run, kernel.rpartition("/")[2]
        data = self._store.stage_data(run, output)
        calls = [call for call in (data or {}).get("calls", ()) if call.get("kernel") == name]
        origins = dict.fromkeys(str(node) for call in calls for node in call.get("origins", ()))
        items = self._thread.items(graph)
        text = self._store.stage_text(run, kernel)
        found = nodes_of_statements(
            text, items, self._graph_text(graph), origins, self._buffers(kernel, output, items, text)
        )
        lines = {line: tuple(items.by_name[node].element for node in nodes) for line, nodes in found.items()}
        if not lines:
            return {}
        head = next((n for n, row in enumerate(text.split("\n"), 1) if row.startswith(('extern "C"', "def "))), 0)
        if head:
            lines[head] = tuple(items.by_name[node].element for node in origins if node in items.by_name)
        return lines

    def _buffers(self, kernel: str, output: str, graph: Items, text: str) -> dict[str, tuple[str, ...]]:
        """Argument of a kernel → the nodes whose value it holds."""
        values = self._values_of(output, graph)
        call = self._calls(output).get(kernel.rpartition("/")[2], ())
        return {name: values.get(value, ()) for name, value in arguments_of(text, call).items()}

    def _calls(self, output: str) -> dict[str, list[str]]:
        """Kernel → the arguments of its first call."""
        if output not in self._calls_in:
            found: dict[str, list[str]] = {}
            rows = self._store.stage_text(self._report.run, output).split("\n")
            for item in self._thread.items(output).items:
                element = item.element
                if element.line == element.end_line and item.target not in found:
                    found[item.target] = arguments_in(rows[element.line - 1])
            self._calls_in[output] = found
        return self._calls_in[output]

    def _values_of(self, output: str, graph: Items) -> dict[str, tuple[str, ...]]:
        """Buffer, and the scheduler node that writes it → the nodes whose value it holds: of those that the scheduler
        node came from the ones that no other of them uses."""
        if output not in self._buffers_in:
            found: dict[str, tuple[str, ...]] = {}
            found |= {item.element.name: (item.element.name,) for item in graph.items if item.op == "placeholder"}
            for row in self.schedule(output):
                nodes = [name for name in row.get("origins", ()) if name in graph.by_name]
                inputs = {name for node in nodes for name in graph.by_name[node].inputs}
                used = {form for name in inputs for form in forms_of(graph, name)}
                last = tuple(name for name in nodes if name not in used)
                found[str(row.get("name"))] = last
                for buffer, *_ in row.get("writes", ()):
                    found[str(buffer)] = last
            self._buffers_in[output] = found
        return self._buffers_in[output]

    def schedule(self, output: str) -> list[dict[str, Any]]:
        """The scheduler nodes before fusion; without those of data of another version, or from elsewhere."""
        schedule = chain.siblings(self._stages_of[output], self._stages[output], Role.SCHEDULE)
        first = next((stage.id for stage in schedule if not stage_kind(stage.name).is_fused), None)
        data = None if first is None else self._store.stage_data(self._report.run, first)
        rows = data.get("nodes") if isinstance(data, dict) else None
        return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []

    def _graph_text(self, graph: str) -> str:
        if self._text_of_graph[0] != graph:
            self._text_of_graph = (graph, self._store.stage_text(self._report.run, graph))
        return self._text_of_graph[1]

    def output_code_of(self, kernel: str) -> str | None:
        """The id of the output code that calls a kernel; None if it was not kept."""
        code = self._thread.codes.get(chain.folder_of(kernel))
        return None if code is None else code.id

    def named(self, output: str, name: str) -> str | None:
        """The stage of a kernel that output code defines."""
        stage = self._stages[output]
        kernel = f"{output.rpartition('/')[0]}/{KERNELS}{chain.suffix_of(stage)}/{name}"
        return kernel if kernel in self._stages else None

    def last_graph(self, kernel: str) -> str | None:
        """The graph that Inductor lowered to a kernel."""
        own = self._stages[kernel]
        found = None
        for stage in self._thread.pipeline(self._compile_of[kernel]):
            alike = chain.is_shared(stage) or chain.is_backward(stage) == chain.is_backward(own)
            if stage_kind(stage.name).is_graph and alike:
                found = stage.id
        return found

    def of_buffer(self, output: str, name: str) -> tuple[Item, ...]:
        """The nodes whose value a buffer of output code holds: the output of a scheduler node, or an input."""
        graph = self.last_graph(output)
        if graph is None:
            return ()
        items = self._thread.items(graph)
        return tuple(items.by_name[node] for node in self._values_of(output, items).get(name, ()))

    def computed_by(self, output: str, item: Item) -> list[Element]:
        """What the statements of a kernel compute, else what it came from."""
        kernel = self.named(output, item.target)
        lines = {} if kernel is None else self.of_lines(kernel)
        head = min(lines, default=0)
        nodes = dict.fromkeys(node for line, own in lines.items() if line != head for node in own)
        return list(nodes or self._thread.parents(item.element))

    def of_call(self, output: str, item: Item) -> list[Element]:
        """The node that a call of a library computes.  Inductor names those of its arguments, too."""
        graph = self.last_graph(output)
        if graph is None or self.named(output, item.target) is not None:
            return []
        items = self._thread.items(graph)
        values = self._values_of(output, items)
        nodes = [name for node in item.ancestors for name in values.get(node, ())]
        return [items.by_name[name].element for name in dict.fromkeys(nodes)]
