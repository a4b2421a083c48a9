"""The findings of a step's memory: lines that hold much of the peak for a reason that can be changed."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from irscope.findings.kinds import memory_at_peak
from irscope.measures.tree import PathPart, PathTree
from irscope.profiling.buffer_places import SAVED
from irscope.profiling.step_memory import FLOAT32, GRAPHS, INPUTS, STATES, VARIABLES, VIEW, ZEROS, StepMemory
from irscope.protocol import Finding, Report
from irscope.usercode.source import parse, range_of_line, range_of_node
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.units import count, percent, size

_LEAST_SAVED, _LEAST_ZEROS, _LEAST_HELD, _LEAST_STATES, _LEAST_FREE = 0.1, 0.02, 0.02, 0.2, 0.1
"""Shares of the peak from which on a line is told."""
_NAMED = (VARIABLES, INPUTS)
_MOST_SAVED = 3
"""Lines with what is saved for the backward: those that hold most."""


def peak_memory(memory: StepMemory, report: Report) -> list[Finding]:
    """The findings of a step; empty if nothing is known that could be changed."""
    return [
        *_saved(memory, report), *_zeros(memory, report), *_kept(memory, report), *_states(memory, report),
        *_fragmented(memory, report),
    ]  # fmt: skip


def _finding(code: str, message: str, hints: tuple[str, ...], file: str, line: int) -> Finding:
    explanation = "Measured by `irscope profile --memory`, which also lists what else is held."
    kind = memory_at_peak.KIND
    return Finding(
        kind.id, code, kind.severity, message, explanation, hints, None, file, range_of_line(file, line), 1, (), ()
    )


def _share(bytes: float, memory: StepMemory) -> str:
    return f"{percent(bytes, memory.peak_bytes)} of the {size(memory.peak_bytes)} at the peak of a {memory.what}"


def _saved(memory: StepMemory, report: Report) -> Iterator[Finding]:
    held = Counter[tuple[str, int]]()
    for path, own in _of_kind(memory.by_line, SAVED):
        place = next(((part.file, part.line) for part in reversed(path) if is_user_file(part.file)), None)
        if place is not None:
            held[place] += int(own)
    for (file, line), bytes in held.most_common(_MOST_SAVED):
        if bytes >= _LEAST_SAVED * memory.peak_bytes:
            yield _finding(
                "memory-saved", f"This line saves {size(bytes)} for the backward, {_share(bytes, memory)}.",
                ("`torch.utils.checkpoint` around it, or `torch._functorch.config.activation_memory_budget` below 1, "
                 "computes it again in the backward instead: less memory, more time.",), file, line,
            )  # fmt: skip


def _zeros(memory: StepMemory, report: Report) -> Iterator[Finding]:
    """What PyTorch makes for each output of a compiled forward that has no gradient, such as logits beside the loss."""
    bytes = sum(one.bytes for one in memory.held if one.kind == ZEROS)
    places = [path for path, _ in _of_kind(memory.by_line, ZEROS)]
    place = next((part for path in places for part in path if is_user_file(part.file)), None)
    if place is not None and bytes >= _LEAST_ZEROS * memory.peak_bytes:
        yield _finding(
            "memory-unused-outputs",
            f"Compiled code returns tensors whose gradient nothing asks for. The backward gets zeros for them: {size(bytes)}, "
            f"{_share(bytes, memory)}.",
            ("Return only what the backward starts from, or detach the others in the compiled function.",),
            place.file, place.line,
        )  # fmt: skip


def _kept(memory: StepMemory, report: Report) -> Iterator[Finding]:
    """Variables that hold more than what is used of them."""
    tree = parse(report.script)
    beside = sum(one.bytes for one in memory.held if one.kind not in (VARIABLES, SAVED))
    for one in memory.held:
        if one.kind not in _NAMED or not one.why or tree is None or (place := _assigned(tree, one.name)) is None:
            continue
        line = range_of_node(report.script, place).start.line
        if one.why == GRAPHS and one.count > 1:
            yield _finding(
                "memory-kept-graphs",
                f"`{one.name}` holds {count(one.count, 'tensor')} with the graph of each, so what their backward "
                f"needs is held, too, as long as they are.",
                (f"Keep `.detach()` or `.item()` of what goes into `{one.name}`.",), report.script, line,
            )  # fmt: skip
        elif one.why == VIEW and one.bytes >= _LEAST_HELD * (beside + one.bytes):
            yield _finding(
                "memory-view", f"`{one.name}` is a small view of a block of {size(one.bytes)}, which it holds: "
                f"{_share(one.bytes, memory)}.", (f"`{one.name} = {one.name}.clone()` holds only what is used.",),
                report.script, line,
            )  # fmt: skip


def _states(memory: StepMemory, report: Report) -> Iterator[Finding]:
    """Optimizers whose states are in float32, at the line that makes them."""
    held = Counter[str]()
    for one in memory.held:
        if one.kind == STATES and one.why == FLOAT32:
            held[one.name.partition(".")[0]] += one.bytes
    tree = parse(report.script)
    for name, bytes in held.items():
        if bytes < _LEAST_STATES * memory.peak_bytes or tree is None or (place := _called(tree, name)) is None:
            continue
        yield _finding(
            "memory-optimizer", f"The states of `{name}` are in float32: {size(bytes)}, {_share(bytes, memory)}.",
            ("An optimizer of PyTorch keeps its states in the dtype of the parameters: bfloat16 halves both. Optimizers with "
             "states of 8 bits, such as torchao's, need a quarter. Check that the training still converges.",),
            report.script, range_of_node(report.script, place).start.line,
        )  # fmt: skip


def _fragmented(memory: StepMemory, report: Report) -> Iterator[Finding]:
    """The variable or line whose blocks keep most free memory from being given back, if that is much."""
    reserved = memory.reserved_bytes or 0
    tree = parse(report.script)
    beside = Counter[tuple[str, str, int]]()
    for one in memory.held:
        name, place = "", (one.file, one.line)
        if one.kind in _NAMED and tree is not None and (assigned := _assigned(tree, one.name)) is not None:
            name, place = one.name, (report.script, range_of_node(report.script, assigned).start.line)
        if is_user_file(place[0]):
            beside[name, place[0], place[1]] += one.free_beside
    for (name, file, line), free in beside.most_common(1):
        if reserved and free >= _LEAST_FREE * reserved:
            holder = f"`{name}` holds" if name else "This line allocates"
            yield _finding(
                "memory-fragmented", f"{holder} blocks between which {size(free)} of the allocator's memory are free but can neither "
                f"be given back nor hold a larger block: {percent(free, reserved)} of the {size(reserved)} that are reserved.",
                ("Allocate what is kept before what is freed, or set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",),
                file, line,
            )  # fmt: skip


def _called(tree: ast.Module, name: str) -> ast.AST | None:
    """The first call of a function or class of that name."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return next((call for call in calls if ast.unparse(call.func).rpartition(".")[2] == name), None)


def _of_kind(tree: PathTree, kind: str) -> Iterator[tuple[tuple[PathPart, ...], float]]:
    """The paths below a kind, without it, each with its own bytes."""
    paths: list[tuple[PathPart, ...]] = []
    for node in tree.nodes:
        paths.append((*paths[node.parent], node.part) if node.parent >= 0 else ())
        path = paths[-1]
        if path and path[0].name == kind and node.exclusive[0]:
            yield path[1:], node.exclusive[0]


def _assigned(tree: ast.Module, name: str) -> ast.AST | None:
    """Where a variable gets a value; of a list, where something is appended."""
    first: ast.AST | None = None
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("append", "extend")
        ):
            if isinstance(node.func.value, ast.Name) and node.func.value.id == name:
                return node
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if first is None and any(isinstance(target, ast.Name) and target.id == name for target in targets):
            first = node
    return first
