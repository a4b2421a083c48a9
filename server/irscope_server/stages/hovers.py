"""What is said when the pointer rests on something in a stage: what it is, how big, and where it came from."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

from irscope.ir.nodes import NodeFacts, Value
from irscope.pipelines.registry import role_of, stage_kind
from irscope.protocol import Origin, StageRef
from irscope.provenance import chain
from irscope.provenance.elements import Item
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary import units
from irscope.vocabulary.stages import Role

from irscope_server.base import words
from irscope_server.language.type_labels import symbol_rows
from irscope_server.stages.linked import RunReader, document_uri

UriOf = Callable[[str], str]

_MOST_ORIGINS = 8
_MOST_NODES = 12


def hover_text(run: RunReader, stage: StageRef, line: int, name: str, uri_of: UriOf) -> str:
    """Markdown on a name in a line (1-based) of a stage, or on the line; empty if nothing is known about it."""
    if stage_kind(stage.name).is_graph:
        parts = list(_node(run, stage, line, name, uri_of))
    elif role_of(stage.name) is Role.CODE:
        parts = list(_output_code(run, stage, line, name, uri_of))
    elif role_of(stage.name) is Role.KERNEL or chain.is_below_kernel(stage):
        parts = list(_kernel_line(run, stage, line, uri_of))
    else:
        origins = run.linked.keys(stage.id).get(line, ())
        parts = [_from(origins, run, uri_of)] if origins else []
    return "\n\n".join(part for part in parts if part)


# --- nodes of graphs --------------------------------------------------------------------------------------------------


def _node(run: RunReader, stage: StageRef, line: int, name: str, uri_of: UriOf) -> Iterator[str]:
    items = run.linked.thread.items(stage.id)
    item = items.by_name.get(name)
    if item is None:
        item = next((one for one in items.items if one.element.line == line and one.op != "placeholder"), None)
    if item is None:
        return
    yield f"**{words.code_span(item.element.name)}** {words.code_span(item.target) if item.op == 'call' else item.op}"
    yield from node_lines(run, item, uri_of)


def node_lines(run: RunReader, item: Item, uri_of: UriOf) -> Iterator[str]:
    """Shape, sizes, costs, origin, module and pass of a node."""
    facts = item.facts
    if facts is not None:
        yield _table(_value_rows(facts.value), _cost_rows(facts))
        yield from symbol_rows(run.symbols_in(item.element.stage, f"[{', '.join(map(str, facts.value.sizes))}]"))
    yield _from(run.linked.keys(item.element.stage).get(item.element.line, ()), run, uri_of)
    if facts is None:
        return
    if facts.module:
        path, kind = facts.module
        yield f"Module {words.code_span(path)} {words.code_span(kind)}"
    if facts.original_aten and not f".{item.target}".endswith(f".{facts.original_aten}"):
        yield f"Decomposed from {words.code_span(facts.original_aten)}"
    # An interpreter copies the graph without a change.
    if facts.sources and (source := facts.sources[0]).passed and not source.passed.startswith("Interpreter_"):
        action = source.action.split(".")[-1].lower() or "made"
        yield f"Pass {words.code_span(source.passed)}: {words.markdown(action)} from {words.code_span(source.name)}"


def _value_rows(value: Value) -> Iterator[tuple[str, str]]:
    if value.kind == "tensor":
        shape = ", ".join(map(str, value.sizes))
        yield "shape", f"[{shape}]"
        yield "dtype", value.dtype.removeprefix("torch.")
        yield "strides", f"[{', '.join(map(str, value.strides))}]"
        yield "device", value.device
    elif value.kind == "list":
        yield "value", f"{len(value.parts)} values"
    elif value.text:
        yield value.kind, value.text
    if value.bytes:
        yield "bytes", units.exact_size(value.bytes)


def _cost_rows(facts: NodeFacts) -> Iterator[tuple[str, str]]:
    if facts.is_view:
        yield "memory", "a view: touches none"
    elif facts.op.startswith("call") and facts.read is not None and facts.written is not None:
        yield "memory", f"reads {units.exact_size(facts.read)}, writes {units.exact_size(facts.written)}"
    if facts.flops:
        yield "FLOPs", f"{facts.flops:,}"
    if facts.intensity:
        yield "intensity", f"{units.significant(facts.intensity)} FLOPs per byte"
    yield "used by", units.count(len(facts.users), "node")


def _table(*rows: Iterable[tuple[str, str]]) -> str:
    found = [(name, value) for group in rows for name, value in group if value]
    if not found:
        return ""
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {words.code_span(value)} |" for name, value in found)])


# --- kernels ----------------------------------------------------------------------------------------------------------


def _output_code(run: RunReader, stage: StageRef, line: int, name: str, uri_of: UriOf) -> Iterator[str]:
    kernel = run.linked.kernels.named(stage.id, name)
    if kernel is not None:
        known = next((one for one in run.report.kernels if one.stage == kernel), None)
        title = {"cpp": "C++ kernel", "triton": "Triton kernel"}.get(known.language if known else "", "kernel")
        yield f"**{words.code_span(name)}** {title}, [open]({document_uri(run, kernel)})"
    nodes = run.linked.kernels.of_buffer(stage.id, name)
    for item in nodes[:1]:
        yield f"**{words.code_span(name)}** holds {words.code_span(item.element.name)}"
        if item.facts is not None:
            yield _table(_value_rows(item.facts.value))
            yield from symbol_rows(run.symbols_in(stage.id, f"[{', '.join(map(str, item.facts.value.sizes))}]"))
    origins = run.linked.keys(stage.id).get(line, ())
    if kernel is None and not nodes:
        yield from _computed(run.linked.computed(stage.id, line))
    if nodes:
        origins = tuple(dict.fromkeys(o for item in nodes for o in run.linked.keys_of_item(item)))
    yield _from(origins, run, uri_of)


def _kernel_line(run: RunReader, stage: StageRef, line: int, uri_of: UriOf) -> Iterator[str]:
    nodes = run.linked.computed(stage.id, line)
    yield from _computed(nodes)
    origins = run.linked.keys(stage.id).get(line, ())
    yield _from(origins, run, uri_of)
    yield _called_from(stage, origins, run, uri_of)
    if chain.is_below_kernel(stage) and (above := run.linked.kernel_lines(stage.id, line)):
        kernel = chain.kernel_of(stage)
        uri = document_uri(run, kernel)
        links = ", ".join(f"[line {number}]({uri}#L{number})" for number in above[:4])
        yield f"Kernel {words.code_span(kernel.rpartition('/')[2])}, {links}"


def _computed(nodes: tuple[Item, ...]) -> Iterator[str]:
    if nodes:
        shown = ", ".join(words.code_span(item.element.name) for item in nodes[:_MOST_NODES])
        more = len(nodes) - _MOST_NODES
        yield f"Computes {shown}" + (f" and {more} more" if more > 0 else "")


def _called_from(stage: StageRef, origins: Iterable[Origin], run: RunReader, uri_of: UriOf) -> str:
    """The user's line that calls the compiled code, or runs its backward; empty if that is among the origins."""
    compile = next((one for one in run.report.compiles if stage in one.stages), None)
    if compile is None:
        return ""
    callers = compile.backward_callers if chain.is_of_backward(stage.id) else compile.callers
    call = next((line for line in callers if is_user_file(line.file)), None)
    return "" if call is None or call in origins else _from([call], run, uri_of, "Called from")


# --- common -----------------------------------------------------------------------------------------------------------


def _from(origins: Iterable[Origin], run: RunReader, uri_of: UriOf, head: str = "From") -> str:
    """The source lines as links, with their code."""
    rows = []
    found = list(origins)
    for origin in found[:_MOST_ORIGINS]:
        label = words.markdown(f"{os.path.basename(origin.file)}:{origin.line}")
        code = run.code_at(origin)
        link = f"[{label}]({uri_of(origin.file)}#L{origin.line})"
        rows.append(f"{link} {words.code_span(code)}" if code else link)
    if len(found) > _MOST_ORIGINS:
        rows.append(f"and {len(found) - _MOST_ORIGINS} more")
    if not rows:
        return ""
    return f"{head} {rows[0]}" if len(rows) == 1 else "\n".join([head, "", *(f"- {row}" for row in rows)])
