"""Marks on all sizes that vary, before the first call of a function: as a hint and as the fix that carries it out."""

from __future__ import annotations

import ast

from irscope.findings.recompiling.facts import Facts
from irscope.fixing.compile_calls import MARK_CAVEAT
from irscope.fixing.marking import arguments_of, with_marks
from irscope.fixing.source import source_of_file
from irscope.fixing.syntax import is_simple
from irscope.fixing.texts import edits_between
from irscope.protocol import Fix
from irscope.vocabulary.records import dataclass

MARK, UNBACKED = "torch._dynamo.mark_dynamic", "torch._dynamo.decorators.mark_unbacked"
_TITLE = "Mark the sizes that vary, before the call"
_UNBACKED_TITLE = "Mark the size as unbacked, before the call"
_UNBACKED_CAVEAT = "It raises where the code depends on the size."


@dataclass(frozen=True)
class Marks:
    """Statements before the first call of a function that mark all sizes that vary.

    Args:
        file, line: Where the call is.
        made: Names that arguments of the call get before it, each with the argument's code.  The call passes the names.
        marked: The calls that mark: ``torch._dynamo.mark_dynamic(x, 0)``, or ``if x is not None: …`` if it was no
            tensor at first.
        are_unbacked: Whether the sizes may be 0 and 1, too.
    """

    file: str
    line: int
    made: tuple[tuple[str, str], ...]
    marked: tuple[str, ...]
    are_unbacked: bool

    @property
    def hint(self) -> str:
        """What to do, as a phrase without its full stop."""
        passed = " and ".join(f"`{name}`" for name, _ in self.made)
        then = f", and pass {passed} in the call" if passed else ""
        statements = (*(f"{name} = {code}" for name, code in self.made), *self.marked)
        # A statement with a condition must be the first one on its line.
        between = "`, `" if any(statement.startswith("if ") for statement in statements) else "; "
        return f"Before the call on line {self.line}: `{between.join(statements)}`{then}"

    @property
    def fix(self) -> Fix | None:
        """What carries it out; None if it is not certain where the statements go."""
        source = source_of_file(self.file)
        statements = source.on_line(self.line, ast.stmt) if source is not None else []
        calling = next((statement for statement in statements if is_simple(statement)), None)
        if source is None or calling is None:
            return None
        made = {code: name for name, code in self.made}
        values = [value for call in source.all(ast.Call, calling) for value, _ in arguments_of(source, call)]
        names: dict[ast.AST, str] = {value: made[code] for value in values if (code := source.code(value)) in made}
        try:
            edits = edits_between(source.text, with_marks(source, calling, names, self.marked))
        except ValueError:
            return None
        title, caveat = (_UNBACKED_TITLE, _UNBACKED_CAVEAT) if self.are_unbacked else (_TITLE, MARK_CAVEAT)
        return Fix(title, caveat, edits, self.file)


def marks_of(facts: Facts, mark: str) -> Marks | None:
    """Marks all dimensions that vary, of all tensors, before the first call; None if not all tensors can be named there, or
    if a graph break cuts the function: it is then compiled for more than the call passes."""
    line, place = facts.line(first=True), facts.calls[0].place if facts.calls else None
    if line is None or place is None or facts.sites is None or facts.is_cut:
        return None
    names, made, marked = facts.sites[0].names(), list[tuple[str, str]](), list[str]()
    for path, dims in facts.varying.items():
        if (argument := facts.argument(path, first=True)) is None:
            return None
        name = argument.expression
        if not argument.plain:
            name = argument.parameter.replace("*", "argument")
            name = name if name not in names else f"{name}_input"
            made.append((name, argument.expression))
        at_first = path in facts.calls[0].tensors  # an argument may be None in the first call and a tensor in others
        only = "" if at_first else f"if {name} is not None: "
        marked.append(f"{only}{mark}({name}, {dims[0] if len(dims) == 1 else list(dims)})")
    return Marks(place.file, line, tuple(made), tuple(marked), are_unbacked=mark == UNBACKED)
