"""Words for what operations give: types, symbolic sizes, and the operations that led to them."""

from __future__ import annotations

from collections.abc import Sequence

from irscope.protocol.symbols import SymbolFacts, symbols_in
from irscope.vocabulary import units

from irscope_server.base import words
from irscope_server.language.line_facts import (
    LineFacts,
    Op,
    layout_text,
    short_target,
    type_text,
)

_MOST_TYPES = 2
"""Different types of one statement that a hint names: a layer may be called with many."""
_MOST_OPS = 12


def value_label(values: int, ops: Sequence[Op]) -> tuple[str, list[Op]] | None:
    """The type of what a statement gives, and the operations of the compile that it is taken from.

    Args:
        values: How many values the statement makes.
        ops: The operations that came from it, of all compiles; the newest compile that tells counts.

    What no other operation of the statement uses is what it gives.  A statement that is run several times in a compile
    gives several; if they differ, two are named.
    """
    for compile in reversed(list(dict.fromkeys(op.compile for op in ops))):
        mine = [op for op in ops if op.compile == compile]
        used = {name for op in mine for name in op.inputs}
        results = [op for op in mine if op.name not in used]
        if values == 0 or not results or not all(op.detail for op in results):
            continue
        labels = [type_text(op.detail) for op in results]
        if values == 1:
            different = list(dict.fromkeys(labels))
            more = " | …" if len(different) > _MOST_TYPES else ""
            return " | ".join(different[:_MOST_TYPES]) + more, mine
        if len(labels) % values == 0:
            return f"({', '.join(labels[-values:])})", mine
    return None


def tooltip(ops: Sequence[Op], facts: LineFacts) -> str:
    """What each operation gives, then what is known about the symbolic sizes in it."""
    counts: dict[tuple[str, str], int] = {}
    for op in ops_in_order(ops):
        counts[op.target, op.detail] = counts.get((op.target, op.detail), 0) + 1
    rows = []
    for (target, detail), count in [*counts.items()][:_MOST_OPS]:
        gives = f" → {words.code_span(type_text(detail))}" if detail else ""
        more = [words.markdown(layout)] if (layout := layout_text(detail)) else []
        more += [units.count(count, "time")] if count > 1 else []
        rows.append(", ".join([f"- {words.code_span(short_target(target))}{gives}", *more]))
    if len(counts) > _MOST_OPS:
        rows.append(f"- and {len(counts) - _MOST_OPS} more")
    compile = ops[0].compile
    known = facts.symbols.get(compile, {})
    symbols = [known[name] for op in ops if "[" in op.detail for name in symbols_in(op.detail) if name in known]
    parts = ["\n".join(rows), *symbol_rows(symbols), f"In compile {words.code_span(compile)}."]
    return "\n\n".join(parts)


def ops_in_order(ops: Sequence[Op]) -> list[Op]:
    """In the order of their graph, whatever lines of a statement they came from."""
    return sorted(ops, key=lambda op: op.number)


def symbol_rows(symbols: Sequence[SymbolFacts]) -> list[str]:
    """A block that tells what symbolic sizes stand for; empty if there are none."""
    rows = []
    for symbol in dict.fromkeys(symbols):
        of = f" of {words.code_span(symbol.source)}" if symbol.source else ", known only at run time"
        rows.append(f"- {words.code_span(symbol.name)}{of}: {words.markdown(symbol.text())}")
    return ["\n".join(rows)] if rows else []
