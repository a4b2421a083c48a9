"""What the names of an expression mean at a place: the node, its stage, its compile, the kernel, the finding.

This is the whole vocabulary; docs/DEBUGGER.md lists it for people.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol

from irscope.ir.graphs import GraphNode
from irscope.ir.guards import guards_of
from irscope.ir.nodes import Value
from irscope.pipelines.registry import role_of
from irscope.protocol import Finding, Kernel
from irscope.values.expressions import NotHere
from irscope.values.facts import Facts, Lazy
from irscope.vocabulary.stages import Role

from irscope_server.dap.base.dtypes import DTYPES
from irscope_server.dap.base.finding_facts import finding_facts, outcome_facts
from irscope_server.dap.base.sections import Section
from irscope_server.dap.engine.programs import ProgramSection
from irscope_server.dap.engine.recording import PlaceInRun, Recording
from irscope_server.dap.trace.facts import locals_facts, locals_of, stack_facts, step_facts, variable_facts
from irscope_server.dap.trace.traces import TraceSection

NAMES = (
    "node", "inputs", "users", "stage", "kernel", "compile", "finding", "findings", "nodes", "guards", "run", "line",
    "step", "stack", "locals", "value", "comparison",
)  # fmt: skip

_DETAIL = re.compile(
    r"^(?P<dtype>[a-z]+\d*[a-z0-9]*)\[(?P<shape>[^\]]*)\](?:\[(?P<strides>[^\]]*)\])?(?P<device>[\w:]*)"
)
_BYTES = {"64": 8, "32": 4, "16": 2, "8": 1, "128": 16}


class Numbers(Protocol):
    """The numbers of a value run (`irscope_server.dap.engine.values`)."""

    def facts(self, place: PlaceInRun) -> Facts | None:
        """The value that was kept at a place; None if there is none."""

    def comparison(self, place: PlaceInRun) -> Facts | None:
        """How far compiled code is off at a place; None if nothing was compared."""


class Names:
    """The names of one run.  `lookup` gives what they mean at a place, for `expressions.evaluate`."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self.values: Numbers | None = None

    def lookup(self, place: PlaceInRun, finding: Finding | None = None) -> Lookup:
        """What names mean at a place, and at a finding there."""
        return Lookup(self._recording, place, finding, values=self.values)


class Lookup:
    """From a name to its value at one place.  Raises LookupError with a sentence for a name that has no meaning there.

    Args:
        finding: The one that the thread has stopped at; None: it has not stopped at any.
        locals_first: In a symbolic trace, whether a local of the function hides a name of ours: the user points at it
            in the source.
        values: The numbers of the run; None: none are known.
    """

    def __init__(
        self,
        recording: Recording,
        place: PlaceInRun,
        finding: Finding | None,
        *,
        locals_first: bool = False,
        values: Numbers | None = None,
    ) -> None:
        self._recording, self.place, self._stopped_at, self._numbers = recording, place, finding, values
        self._section = recording.section(place)
        self._locals_first = locals_first
        section = self._section
        self._trace = section if isinstance(section, TraceSection) and section.walk is not None else None

    def __call__(self, name: str) -> Any:
        """The value of a name at this place.  Raises LookupError if it has no meaning here."""
        if isinstance(self._section, ProgramSection):
            known_blocks = self._section.names(self.place.spot)
            if name in known_blocks:
                return known_blocks[name]
        if self._trace is not None and (self._locals_first or name not in NAMES):
            known = locals_of(self._trace, self.place.spot)
            if name in known:
                return variable_facts(known[name])
        if name in NAMES:
            return getattr(self, f"_{name}")()
        if name in self._section.nodes:
            return node_facts(self._section, name)
        if re.search(rf"^\s*{re.escape(name)}\b.* = ", self._section.text, re.MULTILINE) and self._section.kernels:
            raise NotHere(f"{name} has a value in a program of the kernel: step in")
        if name == "torch":
            raise LookupError("torch stands for its dtypes here: torch.bfloat16")
        what = "a node of this stage" if self._trace is None else "a local of this function"
        raise LookupError(f"unknown name {name!r}: neither {what} nor one of {', '.join(NAMES)}")

    def names(self) -> list[str]:
        """All names that mean something here, for completion."""
        known = locals_of(self._trace, self.place.spot) if self._trace is not None else ()
        if isinstance(self._section, ProgramSection):
            return [*NAMES, *self._section.names(self.place.spot)]
        return [*NAMES, *self._section.nodes, *(name for name in known if name.isidentifier() and name not in NAMES)]

    def _here(self) -> str:
        return self._recording.spot(self.place).name

    def _walked(self) -> TraceSection:
        if self._trace is None:
            raise NotHere("no symbolic trace here")
        return self._trace

    def _step(self) -> Facts:
        section, step = self._walked(), self.place.spot
        return step_facts(section, step, lambda outcome: outcome_facts(outcome, section.findings_at.get(step)))

    def _stack(self) -> Lazy:
        return stack_facts(self._walked(), self.place.spot)

    def _locals(self) -> Facts:
        return locals_facts(self._walked(), self.place.spot)

    def _node(self) -> Facts:
        if self._here() not in self._section.nodes:
            raise NotHere(f"no node here: this is the {self._section.title.lower()}")
        return node_facts(self._section, self._here())

    def _inputs(self) -> Any:
        return self._node().get("inputs")

    def _users(self) -> Any:
        return self._node().get("users")

    def _stage(self) -> Facts:
        return stage_facts(self._section)

    def _nodes(self) -> Lazy:
        return all_nodes(self._section)

    def _compile(self) -> Facts:
        compile = self._section.compile
        return Facts(
            "compile",
            f"{compile.id} {compile.title}",
            {
                "id": compile.id,
                "function": compile.title,
                "file": compile.file,
                "line": compile.line,
                "outcome": compile.outcome.value,
                "restarts": compile.restarts,
                "graph_ops": compile.graph_ops,
                "seconds": compile.seconds,
                "reasons": list(compile.reasons),
                "stages": [stage.id for stage in compile.stages],
            },
        )

    def _run(self) -> Facts:
        report = self._recording.report
        return Facts(
            "run",
            report.run,
            {
                "id": report.run,
                "script": report.script,
                "torch": report.torch,
                "outcome": report.outcome.kind.value,
                "message": report.outcome.message,
                "seconds": report.outcome.seconds,
                "compiles": len(report.compiles),
                "findings": len(report.findings),
                "gaps": [f"{gap.what}: {gap.why}" for gap in report.capture_gaps],
            },
        )

    def _kernel(self) -> Facts:
        here = self._here()
        kernels = self._section.kernels
        found = next((kernel for kernel in kernels if kernel.name == here), None)
        if found is None and role_of(self._section.stage.name) is Role.CODE:
            mine = [kernel for kernel in self._recording.report.kernels if kernel.compile == self._section.compile.id]
            found = next((kernel for kernel in mine if kernel.name == here), None)
        elif found is None:
            found = kernels[0] if kernels else None
        if found is None:
            raise NotHere("no kernel here")
        return kernel_facts(found)

    def _finding(self) -> Facts:
        if self._finding_here is None:
            raise NotHere("no finding here")
        return finding_facts(self._finding_here)

    @property
    def _finding_here(self) -> Finding | None:
        return self._stopped_at or next(iter(self._recording.spot(self.place).findings), None)

    def _findings(self) -> list[Facts]:
        compile = self._section.compile.id
        return [finding_facts(each) for each in self._recording.report.findings if compile in each.compiles]

    def _guards(self) -> list[str]:
        compile = self._section.compile
        track = self._recording.tracks[self.place.compile]
        section = next((each for each in track.sections if role_of(each.stage.name) is Role.GUARDS), None)
        if section is None:
            return []
        found = guards_of(compile, section.text, self._recording.report.compiles)
        return [f"{guard.kind}: {guard.check}" for guard in found.guards]

    def _value(self) -> Facts:
        facts = self._numbers.facts(self.place) if self._numbers is not None else None
        if facts is None:
            raise NotHere('no value was recorded here: start a value session ("values": true)')
        return facts

    def _comparison(self) -> Facts:
        facts = self._numbers.comparison(self.place) if self._numbers is not None else None
        if facts is None:
            raise NotHere('nothing was compared here: set "divergence": true')
        return facts

    def _line(self) -> int:
        return self._recording.spot(self.place).line


def node_facts(section: Section, name: str) -> Facts:
    """A node of a graph stage: what its text says, and what the capture kept beside it."""
    node, kept = section.nodes[name], section.facts.get(name)
    values = _values(node, kept.value if kept is not None else Value())
    facts: dict[str, Any] = {"name": node.name, "op": node.op, "target": node.target, **values}
    if kept is not None:
        facts["flops"] = kept.flops
        facts["read"], facts["written"] = kept.read, kept.written
        facts["is_view"] = kept.is_view
        facts["module"] = f"{kept.module[0]}: {kept.module[1]}" if kept.module else None
        facts["original"] = kept.original_aten or None
        facts["passed"] = kept.sources[0].passed if kept.sources else None
    facts["inputs"] = Lazy(len(node.inputs), lambda index: node_facts(section, node.inputs[index]))
    facts["users"] = lambda: _nodes_named(section, section.users.get(name, ()))
    facts["file"] = node.origin.file if node.origin else None
    facts["line"] = node.origin.line if node.origin else None
    facts["code"] = node.code or None
    detail = f": {node.detail}" if node.detail else ""
    return Facts(
        "node",
        f"{node.name}{detail} = {node.target}" if node.op == "call" else f"{node.name}{detail} ({node.op})",
        facts,
    )


def _nodes_named(section: Section, names: Sequence[str]) -> Lazy:
    return Lazy(len(names), lambda index: node_facts(section, names[index]))


def all_nodes(section: Section) -> Lazy:
    """The facts of all nodes of a stage; each is read when it is looked at."""
    return _nodes_named(section, list(section.nodes))


def _values(node: GraphNode, value: Value) -> dict[str, Any]:
    if value.kind == "tensor":
        dtype = value.dtype if value.dtype.startswith("torch.") else f"torch.{DTYPES.get(value.dtype, value.dtype)}"
        return {
            "dtype": dtype,
            "shape": list(value.sizes),
            "strides": list(value.strides),
            "device": value.device,
            "bytes": value.bytes,
        }
    match = _DETAIL.match(node.detail)
    if match is None or match["dtype"] not in DTYPES:
        return {"dtype": None, "shape": None, "strides": None, "device": None, "bytes": value.bytes}
    shape = _sizes(match["shape"])
    width = 1 if match["dtype"] == "b8" else _BYTES.get(re.sub(r"^[a-z]+(\d+).*$", r"\1", match["dtype"]))
    size = width
    for each in shape:
        size = size * each if size is not None and isinstance(each, int) else None
    return {
        "dtype": f"torch.{DTYPES[match['dtype']]}",
        "shape": shape,
        "strides": _sizes(match["strides"]) if match["strides"] is not None else None,
        "device": match["device"] or None,
        "bytes": size,
    }


def _sizes(text: str) -> list[int | str]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    return [int(part) if part.isdecimal() else part for part in parts]


def stage_facts(section: Section) -> Facts:
    """A stage as facts: its name, language, size in bytes, and the pass that made it (None without one)."""
    stage = section.stage
    return Facts(
        "stage",
        section.title,
        {
            "name": stage.name,
            "id": stage.id,
            "language": stage.language,
            "bytes": stage.bytes,
            "nodes": lambda: len(section.nodes),
            "passed": stage.passed or None,
            "seconds": stage.seconds or None,
        },
    )


def kernel_facts(kernel: Kernel) -> Facts:
    """A kernel as facts; ``origins`` are texts ``FILE:LINE``."""
    return Facts(
        "kernel",
        f"{kernel.name} ({kernel.language})",
        {
            "name": kernel.name,
            "language": kernel.language,
            "stage": kernel.stage,
            "origins": [f"{origin.file}:{origin.line}" for origin in kernel.origins],
        },
    )
