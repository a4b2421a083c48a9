"""The comparison of one call of compiled code with its graph, as data; `judged` puts it together in the script's process.

The data of a stage ``divergence``:

==============  ========================================================================================================
key             value
==============  ========================================================================================================
``stage``       id of the post-grad graph whose nodes are compared; ``call``: which call, from 1
``tolerance``   ``{"slack", "rtol": {dtype: number}}``; `irscope.values.check.tolerance` tells what is done with them
``nodes``       in graph order, those whose value compiled code wrote to memory: ``{"name", "kernel", "dtype", "local",
                "to_eager", "to_float64", "eager_to_float64"}``.  ``local`` (null if it could not be measured):
                ``{"ratio", "compiled", "eager", "rounding", "allowed", "index", "numbers", "why"}``, where a ratio above
                1 differs; the others are the largest differences along the whole graph (null unknown)
``found``       the first divergence, or null: ``{"node", "target", "kernel", "how", "pass", "stage", "file", "line",
                "inner", "local", "alone", "tried", "message"}``.  ``how``: ``step``, ``pass``, ``lowering``, ``fusion``
                or ``code-generation``; ``pass`` names the pass, or the step between two graphs; ``stage`` is the id of the stage that has the node; ``file`` and ``line`` are the
                user's line that it came from, else the user's line that called the compiled code (an empty file: neither
                is known); ``inner``: ``[file, line]`` of a library's line that it came from, or null; ``tried``: sentences on how it was
                found; ``tensors`` (may be missing): ``{"file", "compiled", "eager", "float64"}``, values with a file
``notes``       sentences: what could not be compared, and why
``reproducer``  ``{"script", "inputs"}``: the text of a script, and the name of the file beside it (in the run's folder of
                values) that it loads, or empty; null if there is none
==============  ========================================================================================================
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from irscope.pipelines.dynamo_stages import DYNAMO_GRAPH
from irscope.pipelines.inductor.stages import POST_GRAD_GRAPH, PRE_GRAD_GRAPH
from irscope.usercode.user_files import is_user_file
from irscope.values.blame.blaming import Blame, PassCheck, Version
from irscope.values.blame.locating import Location, differs, locate
from irscope.values.blame.reproducer import Reproducer, reproducer_of, reproducer_of_step
from irscope.values.blame.steps import CannotCompare, region_of_step, step_between
from irscope.values.check.comparing import Compared, Comparison, CompiledValues
from irscope.values.check.tolerance import tolerance_data
from irscope.values.run.interpreting import KeptGraph
from irscope.values.run.running import CallMoment
from irscope.values.run.subgraph_compile import Drawing, Region, region_of
from irscope.vocabulary.records import dataclass

DYNAMO = DYNAMO_GRAPH.name
_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+), in ', re.MULTILINE)


@dataclass
class Verdict:
    """What came out at one call."""

    compared: list[Compared]
    notes: list[str]
    wrong: Compared | None = None
    location: Location | None = None
    blame: Blame | None = None
    found: dict[str, Any] | None = None
    reproducer: Reproducer | None = None

    def data(self, stage: str, call: int, inputs: str = "") -> dict[str, Any]:
        """As told above; ``inputs``: name of the file that holds the inputs of the reproducer."""
        reproducer = {"script": self.reproducer.text, "inputs": inputs} if self.reproducer is not None else None
        return {
            "stage": stage, "call": call, "tolerance": tolerance_data(),
            "nodes": [_node_data(each) for each in self.compared], "found": self.found, "notes": self.notes,
            "reproducer": reproducer,
        }  # fmt: skip


def judged(moment: CallMoment, found: CompiledValues, versions: Sequence[Version], stage: str) -> Verdict:
    """Compares one call of compiled code with its graph, and looks for what is to blame where they differ.

    ``stage`` is the id of the post-grad graph, of which `moment.compiled.graph` is the graph.
    """
    kept: KeptGraph = moment.compiled.graph
    functional = next((version.kept for version in versions if version.stage == POST_GRAD_GRAPH.name), None)
    if is_written := kept.writes_between and functional is not None:
        # What such a graph says depends on what shares memory, which lowering decides again.
        kept, found = functional, found.of(functional)
    drawing = Drawing(moment.compiled.config)
    region: Region | None = None
    comparison = Comparison(kept, found, drawing)
    verdict = Verdict(comparison.run(moment.inputs), [*found.notes, *comparison.notes])
    blames, inputs, notes = _blames(moment, kept, found, versions, drawing)
    verdict.notes += notes
    verdict.wrong = next((each for each in verdict.compared if differs(each)), None)
    folder = stage.rpartition("/")[0]
    if is_written and verdict.wrong is None:
        blames = [blame for blame in blames if blame.stage != POST_GRAD_GRAPH.name or "→" in blame.name]
    if blames:
        blame = verdict.blame = blames[0]
        verdict.found = _found_by_pass(blame, folder, moment)
        region = region_of_step(blame, inputs()) if blame.stage == DYNAMO else _region_before(blame, inputs())
    elif verdict.wrong is not None:
        verdict.location = locate(moment, kept, found, verdict.wrong, drawing)
        verdict.found = _found_in_code(verdict.wrong, verdict.location, moment, stage)
        region = verdict.location.region
    if verdict.found is not None and region is not None:
        measure = verdict.location.measure if verdict.location is not None else None
        compiled, message = moment.compiled, str(verdict.found["message"])
        try:
            if verdict.blame is not None and verdict.blame.stage == DYNAMO:
                verdict.reproducer = reproducer_of_step(region, message, compiled.settings)
            else:
                verdict.reproducer = reproducer_of(region, measure, message, compiled.settings, compiled.config)
        except Exception as error:  # noqa: BLE001  the divergence is told without it
            verdict.notes.append(f"No reproducer could be made: {type(error).__name__}: {str(error)[:200]}")
    return verdict


def _blames(
    moment: CallMoment, kept: KeptGraph, found: CompiledValues, versions: Sequence[Version], drawing: Drawing
) -> tuple[list[Blame], Callable[[], Mapping[str, Any]], list[str]]:
    """Passes and steps that changed what is computed, in their order; the inputs of all these graphs by name; sentences."""
    step, blames, notes = None, list[Blame](), list[str]()

    def own() -> dict[str, Any]:
        return dict(zip(kept.placeholders, moment.inputs(), strict=True))

    def inputs() -> dict[str, Any]:
        return {**own(), **step.dynamo_inputs(), **step.tangents} if step is not None else own()

    try:
        step = step_between(versions, own)
        if step is not None and (blame := step.blame()) is not None:
            blames.append(blame)
    except Exception as error:  # noqa: BLE001  such a graph may not run by itself
        why = str(error) if isinstance(error, CannotCompare) else f"{type(error).__name__}: {str(error)[:200]}"
        notes.append(f"The step from the dynamo graph to AOTAutograd's was not checked: {why}")
    notes += step.notes if step is not None else []
    others, more = PassCheck(inputs, found.values, drawing, moment).blame(versions)
    early = [each for each in others if each.stage == PRE_GRAD_GRAPH.name]
    return [*early, *blames, *(each for each in others if each not in early)], inputs, notes + more


def _region_before(blame: Blame, named: Mapping[str, Any]) -> Region | None:
    """The graph before a wrong pass, with all of its outputs; None if an input of it is not known."""
    nodes = [node for node in blame.before.graph.nodes if node.op not in ("placeholder", "output")]
    inputs = {node: named.get(node.name) for node in blame.before.graph.nodes if node.op == "placeholder"}
    output = next(node for node in blame.before.graph.nodes if node.op == "output")
    wanted = [node.name for node in output.all_input_nodes if node.op != "placeholder"]
    if any(value is None for value in inputs.values()):
        return None
    return region_of(nodes, inputs.__getitem__, wanted)


def _found_by_pass(blame: Blame, folder: str, moment: CallMoment) -> dict[str, Any]:
    node = next((each for each in blame.after.graph.nodes if each.name == blame.node), None)
    if is_step := "→" in blame.name:  # the node is of the graph before it
        node = next((each for each in blame.before.graph.nodes if each.name == blame.node), node)
    file, line, inner = place_of(node, moment)
    what = f"The step {blame.name}" if is_step else f"The pass {blame.name}"
    since = f"from {blame.node} on its results differ" if blame.node else "its results differ"
    if "backward" in blame.name:
        since = f"the gradients of {blame.node or 'its inputs'} differ from autograd's"
    message = f"{what} changed what the graph computes: {since}, {_much(blame)}."
    target = str(node.target) if node is not None else ""
    return {
        "node": blame.node, "target": target, "kernel": "", "how": "step" if is_step else "pass",
        "pass": blame.name, "stage": f"{folder}/{blame.stage}", "file": file, "line": line, "inner": inner, "local": None, "alone": False,
        "tried": [], "message": message,
    }  # fmt: skip


def _found_in_code(wrong: Compared, location: Location, moment: CallMoment, stage: str) -> dict[str, Any]:
    node = next(each for each in wrong.node.graph.nodes if each.name == location.node)
    measure = location.measure or wrong.local
    assert measure is not None
    file, line, inner = place_of(node, moment)
    kernel = wrong.kernel
    told = {
        "lowering": f"compiled {node.target} computes a different number than eager mode",
        "fusion": f"{kernel} computes different numbers than its nodes do when they are not fused",
        "code-generation": f"{kernel or 'the compiled code'} computes different numbers than its nodes, each of which is right",
    }[location.how]
    size = measure.why or (
        f"off by {measure.compiled:.3g} against float64, eager mode by {measure.eager:.3g}; "
        f"{measure.allowed:.3g} is allowed there"
    )
    message = f"{node.name}: {told} ({size})."
    return {
        "node": node.name, "target": str(node.target), "kernel": kernel, "how": location.how, "pass": "", "stage": stage,
        "file": file, "line": line, "inner": inner, "local": measure.data(), "alone": location.alone, "tried": location.tried,
        "message": message,
    }  # fmt: skip


def place_of(node: Any, moment: CallMoment) -> tuple[str, int, list[Any] | None]:
    """The user's line that a node came from, or its inputs where it has none itself, else the one that called the compiled
    code; and the innermost line of a library."""
    seen: set[Any] = set()
    open_ = [node] if node is not None else []
    while open_ and len(seen) < 200:
        each = open_.pop(0)
        seen.add(each)
        frames = [(m["file"], int(m["line"])) for m in _FRAME.finditer(each.meta.get("stack_trace") or "")]
        if frames:
            mine = [frame for frame in frames if is_user_file(frame[0])]
            return *(mine[-1] if mine else moment.called_from), None if frames[-1] in mine else list(frames[-1])
        open_ += [used for used in each.all_input_nodes if used not in seen]
    return *moment.called_from, None


def _much(blame: Blame) -> str:
    if blame.ratio == math.inf:
        return "with NaN where there was a number, or a number where there was NaN"
    return f"off by {blame.ratio:.3g} times what rewriting may change in float64"


def _node_data(compared: Compared) -> dict[str, Any]:
    from irscope.values.run.statistics import plain

    node = compared.node
    return {
        "name": node.name, "kernel": compared.kernel, "dtype": _dtype(node),
        "local": compared.local.data() if compared.local is not None else None,
        "to_eager": plain(compared.to_eager), "to_float64": plain(compared.to_float64),
        "eager_to_float64": plain(compared.eager_to_float64),
    }  # fmt: skip


def _dtype(node: Any) -> str:
    return str(getattr(node.meta.get("val"), "dtype", "")).removeprefix("torch.")
