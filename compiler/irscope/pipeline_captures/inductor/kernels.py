"""The kernels of output code: their stages, and the user's lines that they came from."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable

from irscope.capture.run_book import RunBook
from irscope.internals.scheduler_hooks import kernel_stacks
from irscope.ir import own_kernels
from irscope.ir.graphs import Graph, inner_nodes, parse_graph
from irscope.ir.kernels import KernelSource, kernels_in, origins_from_comments, origins_from_stacks, with_inlined
from irscope.pipelines.inductor.stages import KERNEL, OUTPUT_CODE
from irscope.protocol import Kernel
from irscope.usercode.source import read_source
from irscope.vocabulary.stages import StageKind


class Kernels:
    """Knows the kernels of each compile, and Dynamo's graph, whose nodes lead to the user's lines."""

    def __init__(self, book: RunBook) -> None:
        self._book = book
        self._graphs: dict[str, str] = {}  # compile → text of its Dynamo graph, until it is read
        self._read_graphs: dict[str, Graph | None] = {}
        self._kernels: dict[tuple[str, bool], list[Kernel]] = {}  # (compile, backward) → its kernels
        self._newest: dict[str, tuple[bool, str]] = {}  # compile → its newest output code, and if it is the backward's

    def graph_written(self, compile: str, text: str) -> None:
        """The text of Dynamo's graph is known."""
        self._graphs[compile] = text
        self._read_graphs.pop(compile, None)

    def dynamo_graph(self, compile: str) -> Graph | None:
        """Dynamo's graph with the nodes of those below it; None if it cannot be read."""
        if compile not in self._read_graphs:
            text = self._graphs.pop(compile, "")
            try:
                self._read_graphs[compile] = Graph((*parse_graph(text).nodes, *inner_nodes(text)))
            except ValueError:
                self._read_graphs[compile] = None
        return self._read_graphs[compile]

    def same_graph(self, compile: str, other: str) -> None:
        """A compile has the Dynamo graph of another one."""
        self._read_graphs[compile] = self.dynamo_graph(other)

    def written(
        self,
        compile: str,
        output_code: str,
        text: str,
        backward: bool,
        sources: Iterable[KernelSource] | None = None,
        kind: StageKind = OUTPUT_CODE,
    ) -> list[Kernel]:
        """Output code was written; writes a stage for each kernel that it defines and returns all that it calls.

        Args:
            output_code: The id of its stage.
            sources: The kernels, if they are not in the text.
            kind: The kind of its stage.
        """
        # C++ kernels have no comments, and PyTorch tells the stacks only when they have been compiled.
        origins = origins_from_comments(text, self.dynamo_graph(compile))
        stacks = origins_from_stacks(json.dumps(kernel_stacks()), text)
        origins |= {name: lines for name, lines in stacks.items() if lines}
        origins = with_inlined(origins, self.dynamo_graph(compile))
        kernels = []
        suffix = output_code.rpartition(kind.name)[2]
        written = own_kernels.written_in(text)
        for source in kernels_in(text) if sources is None else sources:
            stage = output_code
            if source.text:
                stage = f"{compile}/{KERNEL.name}{suffix}/{source.name}"
                data = None
                if (home := written.get(source.name)) is not None:
                    data = own_kernels.data_of(source.text, home, read_source(home.file))
                    self._book.keep_source(home.file)
                self._book.write_stage(
                    compile, KERNEL.name, stage, source.text, data, backward=backward, language=source.language
                )
            lines = origins.get(source.name, ())
            kernels.append(Kernel(source.name, source.language, compile, stage, lines, calls=source.calls))
        self._newest[compile] = (backward, text)
        self._kernels[compile, backward] = kernels
        self._book.put_kernels(kernels)
        return kernels

    def link(self, compile: str, payload: str) -> list[Kernel]:
        """PyTorch has told the stacks of the newest kernels; returns these with their origins."""
        backward, text = self._newest.get(compile, (False, ""))
        key = (compile, backward)
        origins = with_inlined(origins_from_stacks(payload, text), self.dynamo_graph(compile))
        linked = [dataclasses.replace(k, origins=origins.get(k.name) or k.origins) for k in self._kernels.get(key, [])]
        self._kernels[key] = linked
        self._book.put_kernels(linked)
        return linked

    def named(self, name: str) -> tuple[Kernel, str] | None:
        """A kernel of the newest output code of the compile that is going on, with that output code."""
        compile = self._book.current_compile("triton") or ""
        backward, text = self._newest.get(compile, (False, ""))
        kernels = self._kernels.get((compile, backward), [])
        return next(((kernel, text) for kernel in kernels if kernel.name == name), None)

    def count(self, compile: str) -> int:
        """How many kernels the newest output code of a compile defines."""
        backward, _ = self._newest.get(compile, (False, ""))
        return sum(kernel.is_generated for kernel in self._kernels.get((compile, backward), ()))
