"""The thread from the user's line down to machine code, and back.

`Provenance` answers for one stored run: what is at a place, what it came from, what it became.  Links are made between
stages that follow each other when they are asked for (`links.py`), from texts and data in the store, so this costs the
capture nothing, and a run from elsewhere can be followed without torch.
"""

from __future__ import annotations

from collections import defaultdict

from irscope.pipelines.registry import calls_kernels, role_of, stage_kind
from irscope.protocol import Compile, Origin, Report, StageRef
from irscope.provenance import chain
from irscope.provenance.elements import SOURCE, Element, Item, Items
from irscope.provenance.fates import fate_of, firsts_of
from irscope.provenance.run_stages import RunStages
from irscope.provenance.stage_links import StageLinks
from irscope.provenance.user_lines import UserLines
from irscope.store.store import Store
from irscope.vocabulary.stages import Part, Role

__all__ = ["SOURCE", "Element", "Provenance"]
_AS_IS = "run as is: the backend reports no stage below this graph"


class Provenance:
    """The links of one run.

    Args:
        versions: Follow graphs through their version after each pass, too.
        ends: With the two ends of the way: the bytecode, and the texts of kernels with what is below them.
    """

    def __init__(self, store: Store, report: Report, versions: bool = False, ends: bool = True) -> None:
        self._stages = RunStages(store, report, versions, ends)
        self._links = StageLinks(self._stages)
        self.lines = UserLines(self._stages)
        self._parents: dict[str, dict[str, tuple[Element, ...]]] = {}
        self._children: dict[str, dict[str, tuple[Element, ...]]] = {}
        self._turned: dict[str, dict[str, dict[str, list[Element]]]] = {}
        self._firsts: dict[str, dict[str, str]] = {}
        self._ends: dict[Element, tuple[Element, str]] = {}

    def read_from(self, store: Store) -> None:
        """Reads what is still to be read from the same store, opened again."""
        self._stages.store = store

    # --- what there is ------------------------------------------------------------------------------------------------

    def pipeline(self, compile: str) -> tuple[StageRef, ...]:
        """The stages on the way from source to machine code in their order, the forward's before the backward's."""
        return self._stages.pipelines[compile]

    @property
    def codes(self) -> dict[str, StageRef]:
        """The stages that `chain.codes_by_folder` gives, for all stages of the run."""
        return self._stages.codes

    def elements(self, stage: str) -> tuple[Element, ...]:
        """The elements of a stage, in the order of its text.  Raises LookupError for an unknown stage."""
        return tuple(item.element for item in self._stages.items(stage).items)

    def at(self, stage: str, line: int) -> Element | None:
        """What is in a line (1-based) of a stage."""
        item = self._stages.items(stage).at(line)
        return None if item is None else item.element

    def items(self, stage: str) -> Items:
        """A stage's elements with what ties them to others.  Raises LookupError for an unknown stage."""
        return self._stages.items(stage)

    def item(self, element: Element) -> Item:
        """An element of a stage with what ties it to others."""
        return self._stages.item(element)

    def source(self, file: str, line: int) -> Element:
        """A line of the user's text."""
        return Element(SOURCE, f"{file}:{line}", line, line, file)

    # --- up and down --------------------------------------------------------------------------------------------------

    def parents(self, element: Element) -> tuple[Element, ...]:
        """What it came from, in the nearest stage above that has any of it; of Dynamo's graph also the user's lines."""
        return () if element.stage == SOURCE else self._parents_in(element.stage).get(element.name, ())

    def children(self, element: Element) -> tuple[Element, ...]:
        """What it became: all that have it among their `parents`; of a user's line in all compiles."""
        if element.stage == SOURCE:
            return self._from_source(element)
        return self._children_in(element.stage).get(element.name, ())

    def _from_source(self, line: Element) -> tuple[Element, ...]:
        """The instructions of the line, and the nodes that came from it by none of these."""
        found: dict[Element, None] = {}
        for compile in self._stages.report.compiles:
            stages = [*self.lines.first_stages(compile.id), self.lines.runners(compile.id)[0]]
            for i, stage in enumerate(filter(None, stages)):
                origin = Origin(line.file, line.line)
                here = self.lines.at(stage, origin)
                found.update(
                    dict.fromkeys(
                        one for one in here if i == 0 or line in self.parents(one) or origin in self.further_lines(one)
                    )
                )
        return tuple(found)

    def further_lines(self, element: Element) -> list[Origin]:
        """The lines on the way to a node that are not its `origins`: those of a library that the user's code calls."""
        own = self.lines.of(element)
        return [line for line in self.lines.path(element) if line not in own]

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
        order = [stage.id for stages in self._stages.pipelines.values() for stage in stages if stage.id in found]
        return {stage: tuple(sorted(found[stage], key=lambda one: (one.line, one.name))) for stage in order}

    def fate(self, element: Element) -> str:
        """Why it has no `children`, in words; empty if it has some, or no reason is known."""
        return "" if element.stage == SOURCE or self.children(element) else self.fate_of_last(element)

    def fate_of_last(self, element: Element) -> str:
        """The `fate` of something that is known to have no children."""
        if self._stages.item(element).op == "call" and calls_kernels(self._stages.by_id[element.stage].name):
            others = self._stages.compile_of[element.stage].stages
            return "" if any(role_of(one.name) is Role.KERNEL for one in others) else _AS_IS
        end, reason = self._end_of_use(element)
        if reason and end != element:
            users = self._users(element)
            on = "" if end == users[0] else f", and what that was for, down to {end.name}"
            reason = f"only {users[0].name} needed it{on}: {reason}"
        return reason or self._twin_of(element)

    def _own_fate(self, element: Element) -> str:
        """Why it has no children, whatever used it."""
        compile, stage = self._stages.compile_of[element.stage], self._stages.by_id[element.stage]
        item = self._stages.item(element)
        if item.op == "call" and (reason := self._end_of(compile, stage)):
            return reason
        passes = [one for one in self._stages.passes_over(compile, stage) if chain.is_descendant(one[0], stage)]
        return fate_of(item, self._stages.items(stage.id), stage, passes)

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
        facts, items = self._stages.item(element).facts, self._stages.items(element.stage)
        return [items.by_name[name].element for name in facts.users if name in items.by_name] if facts else []

    def _twin_of(self, element: Element) -> str:
        """AOTAutograd computes what is in a graph more than once only once."""
        if self._stages.item(element).op != "call":
            return ""
        if element.stage not in self._firsts:
            rows = self._stages.store.stage_text(self._stages.report.run, element.stage).split("\n")
            self._firsts[element.stage] = firsts_of(self._stages.items(element.stage), rows)
        first = self._firsts[element.stage].get(element.name, element.name)
        return "" if first == element.name else f"the same as {first}: computed once"

    def _end_of(self, compile: Compile, stage: StageRef) -> str:
        if stage_kind(stage.name).is_lowered:
            return ""  # the code generator's own
        if stage_kind(stage.name).part is Part.ACCUMULATED:
            below = [one for one in self._stages.compiles if one.startswith(f"{compile.id}/")]
            if below:
                return f"run as Python code, which Dynamo compiles: {', '.join(below)}"
        last = any(levels and stage in levels[-1] for levels in self._stages.tracks[compile.id])
        if last and stage_kind(stage.name).part is Part.BACKWARD and (taken := self._compiled_autograd()):
            return f"a part of what compiled autograd runs: {', '.join(taken)}"
        return _AS_IS if last else ""

    def _compiled_autograd(self) -> list[str]:
        """The compiles whose graph is that of compiled autograd."""
        return [
            id
            for id, stages in self._stages.pipelines.items()
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
        parents = self._linked_parents(stage)
        compile = self._stages.compile_of[stage].id
        first, (traced, runners) = self.lines.first_stages(compile), self.lines.runners(compile)
        if stage_kind(self._stages.by_id[stage].name).is_graph and stage not in first:
            self._add_saved(stage, parents)
            _of_neighbours(self._stages.items(stage), parents)
        for item in self._stages.items(stage).items if stage in first or stage == traced else ():
            own = parents.get(item.element.name, ())
            if stage != traced or not runners.isdisjoint(parent.name for parent in own):
                parents[item.element.name] = (*own, *self._further_lines(item.element, own))
        return parents

    def _linked_parents(self, stage: str) -> dict[str, tuple[Element, ...]]:
        """What each element is linked to in the nearest level above that it is linked to at all."""
        parents: dict[str, tuple[Element, ...]] = {}
        left = {item.element.name for item in self._stages.items(stage).items}
        for level in reversed(self._levels_above(stage)):
            here: dict[str, list[Element]] = defaultdict(list)
            for above in level:
                for name, names_above in self._links.between(above.id, stage).items():
                    if name in left:
                        here[name] += [self._stages.items(above.id).by_name[parent].element for parent in names_above]
            parents.update({name: tuple(elements) for name, elements in here.items()})
            left -= here.keys()
            if not left:
                break
        return parents

    def _further_lines(self, element: Element, parents: tuple[Element, ...]) -> list[Element]:
        """The user's lines that an element has by itself, without those that its parents came from."""
        told = {line for parent in parents for line in self.parents(parent)}
        lines = dict.fromkeys(self.source(line.file, line.line) for line in self.lines.of(element))
        return [line for line in lines if line not in told]

    def _add_saved(self, stage: str, found: dict[str, tuple[Element, ...]]) -> None:
        """What a backward graph is given that no graph above it has, a pass before the partition made: it came from
        what it came from in the forward graph, which saves it."""
        if stage_kind(self._stages.by_id[stage].name).part is not Part.BACKWARD:
            return
        left = [item.element.name for item in self._stages.items(stage).items if item.op == "placeholder"]
        left = [name for name in left if not found.get(name)]
        forward = self._forward_of(stage)
        if left and forward is not None:
            parents = self._parents_in(forward)
            found.update({name: parents[name] for name in left if name in parents})

    def _forward_of(self, backward: str) -> str | None:
        """The forward graph of a backward graph's compile, made in the same way."""
        number = chain.suffix_of(self._stages.by_id[backward])
        return next(
            (
                stage.id
                for stage in self._stages.compile_of[backward].stages
                if stage_kind(stage.name).part is Part.FORWARD and chain.suffix_of(stage) == number
            ),
            None,
        )

    def _levels_above(self, stage: str) -> tuple[chain.Level, ...]:
        for levels in self._stages.tracks[self._stages.compile_of[stage].id]:
            for i, level in enumerate(levels):
                if any(one.id == stage for one in level):
                    return levels[:i]
        return ()

    def _children_in(self, stage: str) -> dict[str, tuple[Element, ...]]:
        if stage not in self._children:
            found: dict[str, dict[Element, None]] = defaultdict(dict)
            stages = [one.id for one in self._stages.pipelines[self._stages.compile_of[stage].id]]
            for below in stages[stages.index(stage) + 1 :] if stage in stages else ():
                for parent, children in self._by_parent(below).get(stage, {}).items():
                    found[parent].update(dict.fromkeys(children))
            self._children[stage] = {name: tuple(children) for name, children in found.items()}
        return self._children[stage]

    def _by_parent(self, stage: str) -> dict[str, dict[str, list[Element]]]:
        """`_parents_in` inverted: stage above → name there → what came from it in this stage."""
        if stage not in self._turned:
            turned: dict[str, dict[str, list[Element]]] = {}
            self._turned[stage] = turned
            items = self._stages.items(stage).by_name
            for name, parents in self._parents_in(stage).items():
                element = items[name].element
                for parent in parents:
                    turned.setdefault(parent.stage, {}).setdefault(parent.name, []).append(element)
        return self._turned[stage]


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
