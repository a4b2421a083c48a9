"""The thread from the user's line down to machine code, and back.

`Provenance` answers for one stored run: what is at a place, what it came from, what it became.  Links are made between
stages that follow each other when they are asked for (`links.py`), from texts and data in the store, so nothing of
this costs the capture anything, and a run from elsewhere can be followed without torch.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from typing import Any

from irscope.pipelines.registry import names_with, role_of, stage_kind
from irscope.protocol import Compile, Origin, Report, StageRef
from irscope.provenance import chain
from irscope.provenance.elements import SOURCE, Element, Item, Items, items_of
from irscope.provenance.fates import fate_of, firsts_of
from irscope.provenance.links import Links, link
from irscope.provenance.replaced import add_replaced
from irscope.store.store import Store
from irscope.symbolic.trace import Walk
from irscope.usercode.user_files import is_package_file, is_user_file
from irscope.vocabulary.stages import Part, Role

__all__ = ["SOURCE", "Element", "Provenance"]


_AT_WORK = ("CALL", "BINARY_", "COMPARE_", "UNARY_", "FOR_ITER", "STORE_SUBSCR", "LOAD_ATTR", "CONTAINS_OP")
"""Instructions that can make a node."""


class Provenance:
    """The links of one run.

    Parameters
    ----------
    versions
        Follow graphs through their version after each pass, too.
    ends
        With the two ends of the way: the bytecode, and the texts of kernels with what is below them.
    """

    def __init__(self, store: Store, report: Report, versions: bool = False, ends: bool = True) -> None:
        self._store, self._report = store, report
        self._compiles = {compile.id: compile for compile in report.compiles}
        self._stages: dict[str, StageRef] = {}
        self._compile_of: dict[str, Compile] = {}
        self._pipelines: dict[str, tuple[StageRef, ...]] = {}
        self._tracks: dict[str, tuple[tuple[chain.Level, ...], ...]] = {}
        for compile in report.compiles:
            self._pipelines[compile.id] = chain.pipeline(compile, versions, ends)
            self._tracks[compile.id] = chain.tracks(self._pipelines[compile.id])
            for stage in compile.stages:
                self._stages[stage.id] = stage
                self._compile_of[stage.id] = compile
        self._items: dict[str, Items] = {}
        self._versions: dict[tuple[str, bool], list[tuple[StageRef, dict[str, Any]]]] = {}
        self._parents: dict[str, dict[str, tuple[Element, ...]]] = {}
        self._children: dict[str, dict[str, tuple[Element, ...]]] = {}
        self._turned: dict[str, dict[str, dict[str, list[Element]]]] = {}
        self._firsts: dict[str, dict[str, str]] = {}
        self._ends: dict[Element, tuple[Element, str]] = {}
        self._by_line: dict[str, dict[Origin, list[Element]]] = {}

    def read_from(self, store: Store) -> None:
        """Reads what is still to be read from the same store, opened again."""
        self._store = store

    # --- what there is ------------------------------------------------------------------------------------------------

    def pipeline(self, compile: str) -> tuple[StageRef, ...]:
        """The stages on the way from source to machine code in their order, the forward's before the backward's."""
        return self._pipelines[compile]

    @functools.cached_property
    def codes(self) -> dict[str, StageRef]:
        """As `chain.codes_by_folder` gives them, for all stages of the run."""
        return chain.codes_by_folder(self._stages.values())

    def elements(self, stage: str) -> tuple[Element, ...]:
        """What a stage is made of, in the order of its text.  Raises LookupError if there is no such stage."""
        return tuple(item.element for item in self._items_of(stage).items)

    def at(self, stage: str, line: int) -> Element | None:
        """What is in a line (1-based) of a stage."""
        item = self._items_of(stage).at(line)
        return None if item is None else item.element

    def items(self, stage: str) -> Items:
        """A stage's elements with what ties them to others.  Raises LookupError if there is no such stage."""
        return self._items_of(stage)

    def item(self, element: Element) -> Item:
        """An element of a stage with what ties it to others."""
        return self._item(element)

    def source(self, file: str, line: int) -> Element:
        """A line of the user's text."""
        return Element(SOURCE, f"{file}:{line}", line, line, file)

    def _items_of(self, stage: str) -> Items:
        if stage not in self._items:
            if stage not in self._stages:
                raise LookupError(f"Run {self._report.run} has no stage {stage}.")
            run = self._report.run
            text, data = self._store.stage_text(run, stage), self._store.stage_data(run, stage)
            try:
                self._items[stage] = items_of(self._stages[stage], text, data)
            except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
                self._items[stage] = Items()  # data of another version, or from elsewhere: nothing is linked
        return self._items[stage]

    def _passes_over(self, compile: Compile, stage: StageRef) -> list[tuple[StageRef, dict[str, Any]]]:
        """The versions of the graphs that a stage's nodes went through, with their data."""
        side = chain.is_backward(stage)
        if (compile.id, side) not in self._versions:
            mine = [
                (version, self._store.stage_data(self._report.run, version.id))
                for version in compile.stages
                if chain.is_version(version) and (chain.is_shared(version) or chain.is_backward(version) == side)
            ]
            self._versions[compile.id, side] = [(version, _with_sets(data)) for version, data in mine]
        return self._versions[compile.id, side]

    def _item(self, element: Element) -> Item:
        return self._items_of(element.stage).by_name[element.name]

    # --- up and down --------------------------------------------------------------------------------------------------

    def parents(self, element: Element) -> tuple[Element, ...]:
        """What it came from, in the nearest stage above that has any of it; of Dynamo's graph also the user's lines."""
        return () if element.stage == SOURCE else self._parents_in(element.stage).get(element.name, ())

    def children(self, element: Element) -> tuple[Element, ...]:
        """What it became: all that have it among their `parents`; of a user's line in all compiles."""
        if element.stage == SOURCE:
            return self._from_source(element)
        return self._children_in(element.stage).get(element.name, ())

    def below(self, element: Element) -> dict[str, tuple[Element, ...]]:
        """Everything that it became, however far down, by stage along the pipeline of each compile."""
        seen: dict[Element, None] = {}
        todo = [element]
        while todo:
            for child in self.children(todo.pop()):
                if child not in seen:
                    seen[child] = None
                    todo.append(child)
        found: dict[str, list[Element]] = defaultdict(list)
        for one in seen:
            found[one.stage].append(one)
        order = [stage.id for stages in self._pipelines.values() for stage in stages if stage.id in found]
        return {stage: tuple(sorted(found[stage], key=lambda one: (one.line, one.name))) for stage in order}

    def fate(self, element: Element) -> str:
        """Why it has no `children`, in words; empty if it has some, or no reason is known."""
        return "" if element.stage == SOURCE or self.children(element) else self.fate_of_last(element)

    def fate_of_last(self, element: Element) -> str:
        """The `fate` of something that is known to have no children."""
        end, reason = self._end_of_use(element)
        if reason and end != element:
            users = self._users(element)
            on = "" if end == users[0] else f", and what that was for, down to {end.name}"
            reason = f"only {users[0].name} needed it{on}: {reason}"
        return reason or self._twin_of(element)

    def _own_fate(self, element: Element) -> str:
        """Why it has no children, whatever used it."""
        compile, stage = self._compile_of[element.stage], self._stages[element.stage]
        item = self._item(element)
        if item.op == "call" and (reason := self._end_of(compile, stage)):
            return reason
        passes = [one for one in self._passes_over(compile, stage) if chain.is_descendant(one[0], stage)]
        return fate_of(item, self._items_of(stage.id), stage, passes)

    def _end_of_use(self, element: Element) -> tuple[Element, str]:
        """Where following users that have no children either leads to a reason, which may be at once, and that reason;
        empty if there is none."""
        way = {element: None}
        while (one := next(reversed(way))) not in self._ends:
            reason, users = self._own_fate(one), self._users(one)
            if reason or not users or users[0] in way or any(self.children(user) for user in users):
                self._ends[one] = one, reason or self._twin_of(one)
            else:
                way[users[0]] = None
        end = self._ends[one]
        self._ends.update(dict.fromkeys(way, end))
        return end

    def _users(self, element: Element) -> list[Element]:
        facts, items = self._item(element).facts, self._items_of(element.stage)
        return [items.by_name[name].element for name in facts.users if name in items.by_name] if facts else []

    def _twin_of(self, element: Element) -> str:
        """AOTAutograd computes what is in a graph more than once only once."""
        if self._item(element).op != "call":
            return ""
        if element.stage not in self._firsts:
            rows = self._store.stage_text(self._report.run, element.stage).split("\n")
            self._firsts[element.stage] = firsts_of(self._items_of(element.stage), rows)
        first = self._firsts[element.stage].get(element.name, element.name)
        return "" if first == element.name else f"the same as {first}: computed once"

    def _end_of(self, compile: Compile, stage: StageRef) -> str:
        if stage_kind(stage.name).is_lowered:
            return ""  # the code generator's own
        if stage_kind(stage.name).part is Part.ACCUMULATED:
            below = [one for one in self._compiles if one.startswith(f"{compile.id}/")]
            if below:
                return f"run as Python code, which Dynamo compiles: {', '.join(below)}"
        last = any(levels and stage in levels[-1] for levels in self._tracks[compile.id])
        if last and stage_kind(stage.name).part is Part.BACKWARD and (taken := self._compiled_autograd()):
            return f"a part of what compiled autograd runs: {', '.join(taken)}"
        return "run as is: the backend reports no stage below this graph" if last else ""

    def _compiled_autograd(self) -> list[str]:
        """The compiles whose graph is that of compiled autograd."""
        return [
            id
            for id, stages in self._pipelines.items()
            if any(stage_kind(s.name).part is Part.ACCUMULATED for s in stages)
        ]

    def origins(self, element: Element) -> tuple[Origin, ...]:
        """The user's lines that it came from, whatever lies between."""
        seen: set[Element] = set()
        found: dict[Origin, None] = {}
        todo = [element]
        while todo:
            one = todo.pop()
            if one in seen:
                continue
            seen.add(one)
            if one.stage == SOURCE:
                found[Origin(one.file, one.line)] = None
            else:
                todo += self.parents(one)
        return tuple(found)

    def _parents_in(self, stage: str) -> dict[str, tuple[Element, ...]]:
        """The parents of everything in a stage, by name."""
        if stage not in self._parents:
            self._parents[stage] = self._find_parents(stage)
        return self._parents[stage]

    def _find_parents(self, stage: str) -> dict[str, tuple[Element, ...]]:
        found: dict[str, tuple[Element, ...]] = {}
        left = {item.element.name for item in self._items_of(stage).items}
        for level in reversed(self._levels_above(stage)):
            here: dict[str, list[Element]] = defaultdict(list)
            for above in level:
                for name, parents in self._links(above.id, stage).items():
                    if name in left:
                        here[name] += [self._items_of(above.id).by_name[parent].element for parent in parents]
            found.update({name: tuple(parents) for name, parents in here.items()})
            left -= here.keys()
            if not left:
                break
        compile = self._compile_of[stage].id
        first, (traced, runners) = self._first(compile), self._runners(compile)
        if stage_kind(self._stages[stage].name).is_graph and stage not in first:
            self._add_saved(stage, found)
            _of_neighbours(self._items_of(stage), found)
        for item in self._items_of(stage).items if stage in first or stage == traced else ():
            parents_of_it = found.get(item.element.name, ())
            if stage == traced and runners.isdisjoint(parent.name for parent in parents_of_it):
                continue
            told = {line for parent in parents_of_it for line in self.parents(parent)}
            lines = dict.fromkeys(self.source(line.file, line.line) for line in self._lines(item.element))
            found[item.element.name] = (*parents_of_it, *(line for line in lines if line not in told))
        return found

    def _add_saved(self, stage: str, found: dict[str, tuple[Element, ...]]) -> None:
        """What a backward graph is given that no graph above it has, a pass before the partition made: it came from
        what it came from in the forward graph, which saves it."""
        if stage_kind(self._stages[stage].name).part is not Part.BACKWARD:
            return
        left = [item.element.name for item in self._items_of(stage).items if item.op == "placeholder"]
        left = [name for name in left if not found.get(name)]
        forward = self._forward_of(stage)
        if left and forward is not None:
            parents = self._parents_in(forward)
            found.update({name: parents[name] for name in left if name in parents})

    def _forward_of(self, backward: str) -> str | None:
        """The forward graph of a backward graph's compile, made in the same way."""
        number = chain.suffix_of(self._stages[backward])
        return next(
            (
                stage.id
                for stage in self._compile_of[backward].stages
                if stage_kind(stage.name).part is Part.FORWARD and chain.suffix_of(stage) == number
            ),
            None,
        )

    def _levels_above(self, stage: str) -> tuple[chain.Level, ...]:
        for levels in self._tracks[self._compile_of[stage].id]:
            for i, level in enumerate(levels):
                if any(one.id == stage for one in level):
                    return levels[:i]
        return ()

    def _children_in(self, stage: str) -> dict[str, tuple[Element, ...]]:
        if stage not in self._children:
            found: dict[str, dict[Element, None]] = defaultdict(dict)
            stages = [one.id for one in self._pipelines[self._compile_of[stage].id]]
            for below in stages[stages.index(stage) + 1 :] if stage in stages else ():
                for parent, children in self._by_parent(below).get(stage, {}).items():
                    found[parent].update(dict.fromkeys(children))
            self._children[stage] = {name: tuple(children) for name, children in found.items()}
        return self._children[stage]

    def _by_parent(self, stage: str) -> dict[str, dict[str, list[Element]]]:
        """`_parents_in` turned round: stage above → name there → what came from it in this stage."""
        if stage not in self._turned:
            turned: dict[str, dict[str, list[Element]]] = {}
            self._turned[stage] = turned
            items = self._items_of(stage).by_name
            for name, parents in self._parents_in(stage).items():
                element = items[name].element
                for parent in parents:
                    turned.setdefault(parent.stage, {}).setdefault(parent.name, []).append(element)
        return self._turned[stage]

    # --- links --------------------------------------------------------------------------------------------------------

    def _links(self, above: str, below: str) -> Links:
        """Of everything in a stage the names in another, above it, that it came from."""
        a, b = self._stages[above], self._stages[below]
        if role_of(a.name) is Role.SOURCE:
            return self._from_bytecode(a, b)
        if chain.is_below_kernel(b) and chain.kernel_of(a) != chain.kernel_of(b) and role_of(a.name) is not Role.CODE:
            return {}
        compile = self._compile_of[below]
        kernels = [kernel for kernel in self._report.kernels if kernel.compile == compile.id]
        links = link(a, self._items_of(above), b, self._items_of(below), kernels)
        if stage_kind(a.name).is_graph and stage_kind(b.name).is_graph:
            for version, data in self._passes_over(compile, b):
                if chain.is_descendant(version, a):
                    add_replaced(links, self._items_of(above), data)
        return links

    def _from_bytecode(self, bytecode: StageRef, graph: StageRef) -> Links:
        """The instruction of the compiled function that was at work when a node was made: from the symbolic trace
        where there is one, else those of its line that call or compute."""
        if chain.rank(graph) != 1:
            return {}
        compile = self._compile_of[bytecode.id]
        exact = self._walked(compile)
        instructions: dict[int, list[str]] = defaultdict(list)
        for item in self._items_of(bytecode.id).items:
            if item.frames and item.target.startswith(_AT_WORK):
                instructions[item.frames[0].line].append(item.element.name)
        up: Links = {}
        for item in self._items_of(graph.id).items:
            if (offset := exact.get(item.element.name)) in self._items_of(bytecode.id).by_name:
                up[item.element.name] = (str(offset),)
            elif mine := [frame.line for frame in item.frames if frame.file == compile.file]:
                up[item.element.name] = tuple(instructions.get(mine[-1], ()))
        return up

    def _walked(self, compile: Compile) -> dict[str, str]:
        """Node of Dynamo's graph → offset of the instruction of the compiled function that led to it."""
        stage = next((stage for stage in compile.stages if role_of(stage.name) is Role.TRACE), None)
        if stage is None:
            return {}
        try:
            walk = Walk(self._store.stage_data(self._report.run, stage.id))
        except ValueError:
            return {}
        found: dict[str, str] = {}
        for step in walk:
            if step.nodes:
                top = step
                while top.caller is not None:
                    top = walk.step(top.caller)
                found.update(dict.fromkeys(step.nodes, str(top.offset)))
        return found

    # --- the user's lines ---------------------------------------------------------------------------------------------

    def _lines(self, element: Element) -> list[Origin]:
        """The user's lines of a node or an instruction, innermost first (of packages if none is the user's)."""
        item, compile = self._item(element), self._compile_of[element.stage]
        frames = [Origin(frame.file or compile.file, frame.line) for frame in item.frames]
        for belongs in (is_user_file, is_package_file):
            if found := [frame for frame in dict.fromkeys(frames) if belongs(frame.file)]:
                return found
        return frames[:1]

    def _from_source(self, line: Element) -> tuple[Element, ...]:
        """The instructions of the line, and the nodes that came from it by none of these."""
        found: dict[Element, None] = {}
        for compile in self._report.compiles:
            stages = [*self._first(compile.id), self._runners(compile.id)[0]]
            for i, stage in enumerate(filter(None, stages)):
                here = self._at_line(stage, Origin(line.file, line.line))
                found.update(dict.fromkeys(one for one in here if i == 0 or line in self.parents(one)))
        return tuple(found)

    def _first(self, compile: str) -> list[str]:
        """The stages that are made from the user's text itself: the bytecode and the first graph, and kernels of his."""
        found: list[str] = []
        graphs = 0
        for stage in self._pipelines[compile]:
            graphs += stage_kind(stage.name).is_graph
            if (
                role_of(stage.name) is Role.SOURCE
                or (stage_kind(stage.name).is_graph and graphs == 1)
                or stage.id in self._own_kernels
            ):
                found.append(stage.id)
        return found

    def _runners(self, compile: str) -> tuple[str, frozenset[str]]:
        """Nodes of Dynamo's graph that run graphs of their own, and the graph that AOTAutograd traced, in which what
        came from these is beside the rest and knows its own lines; empty if there are none."""
        graphs = [stage for stage in self._pipelines[compile] if stage_kind(stage.name).is_graph]
        first = stage_kind(graphs[0].name).names if graphs else ""
        traced = next(
            (one.id for one in graphs if stage_kind(one.name).names != first and not chain.is_version(one)), ""
        )
        inner = self._items_of(graphs[0].id).inner if traced else {}
        runners = frozenset(name for names in inner.values() for name in names)
        return (traced, runners) if runners else ("", runners)

    @functools.cached_property
    def _own_kernels(self) -> frozenset[str]:
        """The stages of hand-written kernels: no other kernel's stage has data."""
        names = sorted(names_with(Role.KERNEL))
        return frozenset().union(*(self._store.stages_with_data(self._report.run, name) for name in names))

    def own_kernels(self, compile: str) -> tuple[str, ...]:
        """The stages of the hand-written kernels of a compile."""
        return tuple(stage.id for stage in self._compiles[compile].stages if stage.id in self._own_kernels)

    def in_own_kernels(self, compile: str, file: str, line: int) -> tuple[Element, ...]:
        """What a line became in these kernels, without what launches them."""
        return tuple(one for stage in self.own_kernels(compile) for one in self._at_line(stage, Origin(file, line)))

    def _at_line(self, stage: str, line: Origin) -> list[Element]:
        if stage not in self._by_line:
            self._by_line[stage] = defaultdict(list)
            for element in self.elements(stage):
                for origin in self._lines(element):
                    self._by_line[stage][origin].append(element)
        return self._by_line[stage].get(line, [])


def _with_sets(data: Any) -> dict[str, Any]:
    """What is kept of a version, with the names of its nodes as sets: they are many, and asked for one by one."""
    whole = data if isinstance(data, dict) else {}
    sets = {key: whole.get(key) for key in ("added", "removed", "changed")}
    return {
        **whole,
        **{key: frozenset(map(str, names if isinstance(names, list) else ())) for key, names in sets.items()},
    }


def _of_neighbours(items: Items, found: dict[str, tuple[Element, ...]]) -> None:
    """What a pass made out of nothing, such as the seeds of random numbers, came from what it was made for: from the
    parents of its users, where these have none from those of its inputs."""
    users: dict[str, list[str]] = defaultdict(list)
    for item in items.items:
        for name in item.inputs:
            users[name].append(item.element.name)
    for item in reversed(items.items):
        name = item.element.name
        if found.get(name) or item.op in ("placeholder", "output"):
            continue
        for neighbours in (users[name], item.inputs):
            if parents := dict.fromkeys(parent for one in neighbours for parent in found.get(one, ())):
                found[name] = tuple(parents)
                break
