"""Which lines of the stages of a run belong together: what a reader sees in one colour, and what the cursor lights up.

A line's *keys* are the places in Python files that it came from: of a node the innermost one that is not torch's own,
of anything else those of its nodes.  The lines of a kernel's text have those of the nodes that they compute
(`statements.py`) where these are known, and none if they are not; what is below a kernel has those of the kernel's
lines that it came from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from functools import cached_property

from irscope.pipelines.registry import role_of, stage_kind
from irscope.protocol import Origin, Report, StageRef
from irscope.provenance import SOURCE, Element, Provenance, chain
from irscope.provenance.elements import Item
from irscope.provenance.kernel_nodes import KernelNodes
from irscope.store.store import Store
from irscope.usercode.user_files import is_torch_file
from irscope.vocabulary.stages import Role

Lines = dict[int, tuple[Origin, ...]]
"""1-based line of a stage → its keys."""


class LinkedLines:
    """The lines of one run.  Raises LookupError for a stage that is unknown."""

    def __init__(self, store: Store, report: Report) -> None:
        self._store, self._report = store, report
        self.thread = Provenance(store, report)
        self._stages = {stage.id: stage for compile in report.compiles for stage in compile.stages}
        self._compile_of = {stage.id: compile.id for compile in report.compiles for stage in compile.stages}
        self._keys: dict[str, Lines] = {}
        self._element_keys: dict[Element, tuple[Origin, ...]] = {}
        self._up: dict[Element, frozenset[Element]] = {}
        self.kernels = KernelNodes(store, report, self.thread)

    # --- colours ------------------------------------------------------------------------------------------------------

    def keys(self, stage: str) -> Lines:
        """The lines of a stage that came from somewhere."""
        if stage not in self._keys:
            found: dict[int, dict[Origin, None]] = defaultdict(dict)
            for line, _, keys in self._rows(stage):
                found[line].update(dict.fromkeys(keys))
            self._keys[stage] = {line: tuple(sorted(keys)) for line, keys in sorted(found.items()) if keys}
        return self._keys[stage]

    @cached_property
    def palette(self) -> dict[Origin, int]:
        """Every key of the run with its number, file by file from top to bottom: neighbours have different numbers."""
        found: set[Origin] = set()
        for compile in self._report.compiles:
            for stage in (*self._first_graphs(compile.id), *self.thread.lines.own_kernels(compile.id)):
                for item in self.thread.items(stage).items:
                    found.update(self._innermost(item))
        return {origin: number for number, origin in enumerate(sorted(found))}

    def callers(self, file: str) -> set[int]:
        """Lines of a file that are not keys, yet on the stack of a node: ``y = self.block(x)``."""
        found: set[int] = set()
        for compile in self._report.compiles:
            for stage in self._first_graphs(compile.id):
                for item in self.thread.items(stage).items:
                    found.update(frame.line for frame in item.frames if frame.file == file)
        return found - {origin.line for origin in self.palette if origin.file == file}

    def _launched_from(self, stage: str) -> tuple[Origin, ...]:
        """The lines that launch a hand-written kernel, whose own lines have other keys; ``stage`` is the kernel
        or one below it."""
        kernel = chain.kernel_of(self._stage(stage))
        if kernel not in self.thread.lines.own_kernels(self._compile_of[stage]):
            return ()
        first = self.thread.elements(kernel)[0]
        return self._keys_of_all(one for one in self._parents(first) if one.stage != SOURCE)

    def _first_graphs(self, compile: str) -> list[str]:
        graphs = [stage for stage in self.thread.pipeline(compile) if stage_kind(stage.name).is_graph]
        first = min((chain.rank(stage) or 0 for stage in graphs), default=0)
        return [stage.id for stage in graphs if chain.rank(stage) == first]

    def _rows(self, stage: str) -> Iterable[tuple[int, Element, tuple[Origin, ...]]]:
        """Lines of a stage, what is there, and its keys."""
        ref = self._stage(stage)
        if role_of(ref.name) is Role.KERNEL or chain.is_below_kernel(ref):
            yield from self._rows_of_kernel(ref)
            return
        for item in self.thread.items(stage).items:
            element = item.element
            if role_of(ref.name) is Role.CODE:
                yield from self._rows_of_code(stage, item)
            elif ref.name.startswith("ir-"):
                yield element.line, element, self._keys_of(element)
            else:
                for line in range(element.line, element.end_line + 1):
                    yield line, element, self._keys_of(element)

    def _rows_of_kernel(self, ref: StageRef) -> Iterable[tuple[int, Element, tuple[Origin, ...]]]:
        """The lines of a kernel, or of what is below one."""
        kernel = chain.kernel_of(ref)
        statements = self.kernels.of_lines(kernel)
        if not statements:  # what its lines compute is not known, so each has what the kernel has
            whole = self.thread.elements(kernel)[:1] if chain.is_version(ref) else ()  # no links of its own
            for item in self.thread.items(ref.id).items:
                yield item.element.line, item.element, self._keys_of(item.element) or self._keys_of_all(whole)
            return
        for item in self.thread.items(ref.id).items:
            element = item.element
            lines = [int(line) for line in item.ancestors] if chain.is_below_kernel(ref) else [element.line]
            computed = [node for line in lines for node in statements.get(line, ())]
            yield element.line, element, self._keys_of_all(computed)

    def _rows_of_code(self, stage: str, item: Item) -> Iterable[tuple[int, Element, tuple[Origin, ...]]]:
        """The lines of a kernel's definition in the output code, or the call of one."""
        element = item.element
        if element.end_line <= element.line:
            yield element.line, element, self._keys_of_all(self.kernels.of_call(stage, item)) or self._keys_of(element)
            return
        kernel_stage = self.kernels.named(stage, element.name)
        inside = {} if kernel_stage is None else self.kernels.of_lines(kernel_stage)
        yield element.line, element, self._keys_of(element)
        for line, nodes in inside.items():
            yield element.line + line, element, self._keys_of_all(nodes)

    def _keys_of(self, element: Element) -> tuple[Origin, ...]:
        if element not in self._element_keys:
            self._element_keys[element] = ()  # what came from itself ends here
            own = () if element.stage == SOURCE else self._innermost(self.thread.item(element))
            if element.stage == SOURCE:
                own = (Origin(element.file, element.line),)
            self._element_keys[element] = (
                own or self._keys_of_all(self._parents(element)) or self._keys_of_users(element)
            )
        return self._element_keys[element]

    def _keys_of_users(self, element: Element) -> tuple[Origin, ...]:
        """A node that a pass has made, and that PyTorch knows no origin of, belongs to the node that uses it."""
        item = None if element.stage == SOURCE else self.thread.item(element)
        if item is None or item.op != "call" or item.facts is None:
            return ()
        names = self.thread.items(element.stage).by_name
        return self._keys_of_all(names[user].element for user in item.facts.users if user in names)

    def _keys_of_all(self, elements: Iterable[Element]) -> tuple[Origin, ...]:
        return tuple(dict.fromkeys(key for element in elements for key in self._keys_of(element)))

    def _innermost(self, item: Item) -> tuple[Origin, ...]:
        if item.op in ("placeholder", "output"):
            return ()
        file = next((c.file for c in self._report.compiles if c.id == self._compile_of[item.element.stage]), "")
        frames = [Origin(frame.file or file, frame.line) for frame in item.frames]
        own = [frame for frame in frames if not is_torch_file(frame.file)]
        stage = item.element.stage
        if not own and (frames or stage in self._first_graphs(self._compile_of[stage])):
            # Torch leaves no line of its own layers: they belong to the line that calls them.
            own = list(self._compile_callers(stage))
        return tuple((own or frames)[:1])

    def _parents(self, element: Element) -> tuple[Element, ...]:
        """Without the way through the bytecode, which knows no more than the line."""
        if element.stage == SOURCE:
            return ()
        return tuple(
            parent
            for parent in self.thread.parents(element)
            if parent.stage == SOURCE or role_of(self._stages[parent.stage].name) is not Role.SOURCE
        )

    # --- counterparts -------------------------------------------------------------------------------------------------

    def counterparts(self, stage: str, line: int, wanted: Collection[str]) -> dict[str, tuple[int, ...]]:
        """Lines of other stages that a line of a stage came from or became, by stage.

        Where nothing of a stage is on the way up or down, as in another compile, those with the same keys.
        """
        starts = self._at(stage, line)
        if not starts:
            return {}
        above = frozenset(starts).union(*(self._above(one) for one in starts))
        keys = set(self.source_of(stage, line))
        found: dict[str, tuple[int, ...]] = {}
        for other in wanted:
            if other in self._stages and other != stage:
                around = self._around_kernel(starts[0], other, above)
                found[other] = around or self._related(other, frozenset(starts), above) or self._with_keys(other, keys)
        return {other: lines for other, lines in found.items() if lines}

    def _around_kernel(self, start: Element, other: str, above: frozenset[Element]) -> tuple[int, ...]:
        """Between a kernel, or what is below it, and the output code that defines and calls it."""
        here, there = self._stages[start.stage], self._stages[other]
        if role_of(there.name) is Role.CODE and (role_of(here.name) is Role.KERNEL or chain.is_below_kernel(here)):
            kernel = chain.kernel_of(here)
            if self.kernels.output_code_of(kernel) != other:
                return ()
            lines = [int(one.name) for one in above if one.stage == kernel]
            named = [
                item.element for item in self.thread.items(other).items if item.target == kernel.rpartition("/")[2]
            ]
            definition = [element.line for element in named if element.end_line > element.line]
            calls = [element.line for element in named if element.end_line == element.line]
            return tuple(sorted([*(first + line for first in definition for line in lines), *calls]))
        if role_of(here.name) is Role.CODE and (role_of(there.name) is Role.KERNEL or chain.is_below_kernel(there)):
            target = self.thread.item(start).target
            if chain.kernel_of(there) == self.kernels.named(here.id, target):
                return tuple(self.keys(other))
        return ()

    def counterparts_of_source(self, file: str, line: int, wanted: Collection[str]) -> dict[str, tuple[int, ...]]:
        """Lines of stages that came from a line of a Python file; of a caller those of all that it called."""
        found = {}
        for other in wanted:
            if other in self._stages:
                lines = self._with_keys(other, {Origin(file, line)})
                if Origin(file, line) in self._launched_from(other):
                    lines = tuple(self.keys(other))
                if not lines and line in self.callers(file):
                    lines = self._with_keys(other, self._called_from(file, line))
                if not lines and Origin(file, line) in self._compile_callers(other):
                    lines = tuple(self.keys(other))
                if lines:
                    found[other] = lines
        return found

    def _compile_callers(self, stage: str) -> tuple[Origin, ...]:
        """The lines that call the compiled code to which a stage belongs."""
        compile = next(one for one in self._report.compiles if one.id == self._compile_of[stage])
        return compile.backward_callers if chain.is_backward(self._stages[stage]) else compile.callers

    def computed(self, stage: str, line: int) -> tuple[Item, ...]:
        """The nodes that a line computes: of a kernel, of what is below it, of its text in the output code."""
        ref = self._stage(stage)
        if role_of(ref.name) is Role.CODE:
            starts = self._at(stage, line)
            if not starts or role_of(self._stages[starts[0].stage].name) is not Role.KERNEL:
                return ()
            kernel, lines = starts[0].stage, [starts[0].line]
        else:
            kernel, lines = chain.kernel_of(ref), list(self.kernel_lines(stage, line))
        known = self.kernels.of_lines(kernel)
        nodes = dict.fromkeys(node for number in lines for node in known.get(number, ()))
        return tuple(self.thread.item(node) for node in nodes)

    def kernel_lines(self, stage: str, line: int) -> tuple[int, ...]:
        """The lines of its kernel's text that a line of a kernel, or of a stage below it, stands for."""
        ref = self._stage(stage)
        item = self.thread.items(stage).by_name.get(str(line))
        if item is None:
            return ()
        return tuple(int(name) for name in item.ancestors) if chain.is_below_kernel(ref) else (line,)

    def keys_of_item(self, item: Item) -> tuple[Origin, ...]:
        """The lines of the user's code that an item belongs to; empty if it belongs to none."""
        return self._keys_of(item.element)

    def kernels_of(self, stage: str, line: int) -> list[tuple[str, str]]:
        """The kernels that a line of a stage became, or that it belongs to: their output code and their names."""
        ref = self._stage(stage)
        if role_of(ref.name) is Role.KERNEL or chain.is_below_kernel(ref):
            kernel = chain.kernel_of(ref)
            code = self.kernels.output_code_of(kernel)
            return [] if code is None else [(code, kernel.rpartition("/")[2])]
        starts = self._at(stage, line)
        if not starts:
            return []
        if role_of(ref.name) is Role.CODE:
            if role_of(self._stages[starts[0].stage].name) is Role.KERNEL:
                return [(stage, starts[0].stage.rpartition("/")[2])]
            return [(stage, self.thread.item(starts[0]).target)]
        return self._kernels_reached(stage, starts, set(self.source_of(stage, line)))

    def _kernels_reached(self, stage: str, starts: tuple[Element, ...], keys: set[Origin]) -> list[tuple[str, str]]:
        """The kernels that compute elements, or that these were lowered to; else those of the same lines."""
        above = frozenset(starts).union(*(self._above(element) for element in starts))
        exact: dict[tuple[str, str], None] = {}
        alike: dict[tuple[str, str], None] = {}
        for output in self.thread.pipeline(self._compile_of[stage]):
            if role_of(output.name) is not Role.CODE:
                continue
            for item in self.thread.items(output.id).items:
                element = item.element
                computed = self.kernels.of_call(output.id, item) or self.kernels.computed_by(output.id, item)
                reached = [element, *computed]
                if any(node in above or not frozenset(starts).isdisjoint(self._above(node)) for node in computed):
                    exact[output.id, item.target] = None
                elif not keys.isdisjoint(self._keys_of_all(reached)):
                    alike[output.id, item.target] = None
        return list(exact or alike)

    def source_of(self, stage: str, line: int) -> tuple[Origin, ...]:
        """The keys of a line of a stage; none for a line of a kernel that computes nothing."""
        ref = self._stage(stage)
        if (role_of(ref.name) is Role.KERNEL or chain.is_below_kernel(ref)) and self.kernels.of_lines(
            chain.kernel_of(ref)
        ):
            return self.keys(stage).get(line, ())
        return self.keys(stage).get(line) or self._keys_of_all(self._at(stage, line))

    def _called_from(self, file: str, line: int) -> set[Origin]:
        found: set[Origin] = set()
        for compile in self._report.compiles:
            for stage in self._first_graphs(compile.id):
                for item in self.thread.items(stage).items:
                    if any(frame.file == file and frame.line == line for frame in item.frames):
                        found.update(self._innermost(item))
        return found

    def _at(self, stage: str, line: int) -> tuple[Element, ...]:
        """What is in a line; of the comment above a node the node."""
        ref = self._stage(stage)
        item = self.thread.items(stage).at(line)
        if item is None and stage_kind(ref.name).is_graph:
            item = self.thread.items(stage).at(line + 1)
        if item is None:
            return ()
        element = item.element
        if role_of(ref.name) is Role.CODE and element.end_line > element.line and line > element.line:
            kernel = self.kernels.named(stage, element.name)
            text = line - element.line
            if kernel is not None and text in self.kernels.of_lines(kernel):
                return (self._line(kernel, text) or element,)
        return (element,)

    def _line(self, stage: str, line: int) -> Element | None:
        item = self.thread.items(stage).by_name.get(str(line))
        return None if item is None else item.element

    def _with_keys(self, stage: str, keys: Collection[Origin]) -> tuple[int, ...]:
        return tuple(line for line, own in self.keys(stage).items() if not set(own).isdisjoint(keys))

    def _related(self, stage: str, starts: frozenset[Element], above: frozenset[Element]) -> tuple[int, ...]:
        """Lines of a stage that hold what is among `above`, or whose own ancestors hold a start."""
        found: dict[int, None] = {}
        ref = self._stages[stage]
        for item in self.thread.items(stage).items:
            element = item.element
            if element in above or not starts.isdisjoint(self._above(element)):
                lines = [element.line]
                kernel = self.kernels.named(stage, element.name) if element.end_line > element.line else None
                if role_of(ref.name) is Role.CODE and kernel is not None:
                    inside = self._related(kernel, starts, above)
                    lines = [element.line + line for line in inside] or lines
                found.update(dict.fromkeys(lines))
        return tuple(sorted(found))

    def _above(self, element: Element) -> frozenset[Element]:
        """Everything that something came from, up to the first graph."""
        if element not in self._up:
            self._up[element] = frozenset()  # what came from itself ends here
            parents = [parent for parent in self._refined(element) if parent.stage != SOURCE]
            self._up[element] = frozenset(parents).union(*(self._above(parent) for parent in parents))
        return self._up[element]

    def _refined(self, element: Element) -> tuple[Element, ...]:
        """What something came from directly: of a kernel's line the nodes that it computes, empty if none is known."""
        ref = self._stages[element.stage]
        if role_of(ref.name) is Role.KERNEL:
            return self.kernels.of_lines(ref.id).get(element.line, ())
        return self._parents(element)

    # --- stages -------------------------------------------------------------------------------------------------------

    def _stage(self, stage: str) -> StageRef:
        if stage not in self._stages:
            raise LookupError(f"Run {self._report.run} has no stage {stage}.")
        return self._stages[stage]
