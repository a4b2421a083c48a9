"""The changes that findings carry themselves, made on a tree that keeps comments and formatting.

A finding names each as data (`irscope.protocol.SyntaxChange`).  `edited` makes edits of them for a text, as few characters as
differ.  A comment inside of what is replaced goes above its statement.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

import libcst as cst
from irscope.driver.fixing.texts import applied, least_edits
from irscope.protocol import ChangeKind, Edit, Fix, Position, SyntaxChange

from irscope_server.fixing.parsing import MOST_CHARACTERS, parse_expression, parse_module
from irscope_server.fixing.source import Change as Made
from irscope_server.fixing.source import Source

_Node = TypeVar("_Node", bound=cst.CSTNode)
_Small = cst.BaseSmallStatement


class _NotMadeError(Exception):
    """A change does not fit the tree; the finding's plain edits are what there is."""


@functools.lru_cache(maxsize=128)
def edited(text: str, fix: Fix) -> Fix:
    """A fix with the edits that LibCST makes of its changes; as it is where it has none, or where they do not fit."""
    changes = fix.changes or [_guessed(edit) for edit in fix.edits]
    if not changes or len(text) > MOST_CHARACTERS:
        return fix
    try:
        made = _parsed(text)
        changed = _Making(made, changes).text()
        if changed == applied(text, fix.edits):
            return fix
    except (_NotMadeError, ValueError, RecursionError, cst.ParserSyntaxError, cst.CSTValidationError):
        return fix
    return dataclasses.replace(fix, edits=least_edits(text, changed))


@functools.lru_cache(maxsize=4)
def _parsed(text: str) -> Source:
    return Source(text)


def _guessed(edit: Edit) -> SyntaxChange:
    """What an edit does, in runs that were stored before findings named it."""
    kind = ChangeKind.LINES if edit.range.start == edit.range.end else ChangeKind.EXPRESSION
    return SyntaxChange(kind, edit.range, edit.text)


class _Making:
    """Makes all changes of one fix in one walk over the tree."""

    def __init__(self, source: Source, changes: Sequence[SyntaxChange]) -> None:
        self._source, self._changes = source, changes
        self._made: dict[cst.CSTNode, Made | Callable[[cst.CSTNode], Made]] = {}
        self._above: dict[cst.CSTNode, list[str]] = {}
        self._new = Counter(one for change in changes for one in _comments_of(change.code))

    def text(self) -> str:
        """The changed text.  Raises _NotMadeError, ValueError or an error of LibCST if a change does not fit."""
        inserted = [change for change in self._changes if change.kind is ChangeKind.LINES]
        for change in self._changes:
            if change.kind is ChangeKind.EXPRESSION:
                self._expression(change)
            elif change.kind is ChangeKind.STATEMENTS:
                self._statements(change)
            elif change.kind is ChangeKind.REMOVAL:
                self._removal(change)
            elif change.kind is ChangeKind.ARGUMENT:
                self._argument(change)
        for statement, comments in self._above.items():
            self._made[statement] = _with_comments(self._made.get(statement), comments)
        module = self._source.module.visit(_Walk(self._made)) if self._made else self._source.module
        assert isinstance(module, cst.Module)
        if inserted and len(module.body) != len(self._source.module.body):
            raise _NotMadeError
        return self._with_lines(module, inserted).code

    # --- each kind ----------------------------------------------------------------------------------------------------

    def _expression(self, change: SyntaxChange) -> None:
        node = self._source.expression(change.range)
        if node is None:
            raise _NotMadeError
        try:
            new = parse_expression(change.code)
        except ValueError:  # ``pass`` in place of a call that is a statement
            self._statements(change)
            return
        if node.lpar:
            new = new.with_changes(lpar=[*node.lpar, *new.lpar], rpar=[*new.rpar, *node.rpar])
        self._made[node] = new
        inner = node.with_changes(lpar=(), rpar=()) if node.lpar else node  # comments beside its parentheses stay
        self._keep_comments([inner], self._source.statement(node))

    def _statements(self, change: SyntaxChange) -> None:
        old = self._source.statements_in(change.range)
        new = list(parse_module(change.code).body)
        if not old or not new:
            raise _NotMadeError
        if isinstance(old[0], _Small):
            self._small(old, new)
        elif isinstance(parent := self._source.parent(old[0]), cst.If) and parent.orelse is old[0]:
            other = cst.Else(cst.IndentedBlock(new), leading_lines=getattr(old[0], "leading_lines", ()))
            self._made[old[0]] = other
        else:
            new[0] = new[0].with_changes(leading_lines=getattr(old[0], "leading_lines", ()))
            trailing = _last_line(old[-1])
            if trailing is not None and trailing.trailing_whitespace.comment is not None:
                new[-1] = _with_trailing(new[-1], trailing.trailing_whitespace)
                self._new[trailing.trailing_whitespace.comment.value] += 1
            self._made[old[0]] = cst.FlattenSentinel(new)
            self._made.update({one: cst.RemoveFromParent() for one in old[1:]})
        self._keep_comments(old, old[0])

    def _small(self, old: Sequence[cst.CSTNode], new: Sequence[cst.CSTNode]) -> None:
        """Statements among others on one line."""
        made: list[_Small] = []
        for line in new:
            if not isinstance(line, cst.SimpleStatementLine):
                raise _NotMadeError
            made += line.body
        between = cst.Semicolon(whitespace_after=cst.SimpleWhitespace(" "))
        last = getattr(old[-1], "semicolon", cst.MaybeSentinel.DEFAULT)
        made = [*(one.with_changes(semicolon=between) for one in made[:-1]), made[-1].with_changes(semicolon=last)]
        self._made[old[0]] = cst.FlattenSentinel(made)  # type: ignore[arg-type]  # in a line
        self._made.update({one: cst.RemoveFromParent() for one in old[1:]})

    def _removal(self, change: SyntaxChange) -> None:
        node = self._source.expression(change.range)
        decorator = self._source.parent(node) if node is not None else None
        if isinstance(decorator, cst.Decorator):
            self._made[decorator] = cst.RemoveFromParent()
            self._keep_comments([decorator], self._source.parent(decorator))
            return
        old = self._source.statements_in(change.range)
        following = self._source.following(old[-1]) if old else ()
        if not following or any(isinstance(one, _Small) for one in old):
            raise _NotMadeError
        self._made.update({one: cst.RemoveFromParent() for one in old})
        self._keep_comments(old, following[0])

    def _argument(self, change: SyntaxChange) -> None:
        node = self._source.expression(change.range)
        parsed = parse_expression(f"f({change.code})")
        if node is None or not isinstance(parsed, cst.Call):
            raise _NotMadeError
        (new,) = parsed.args
        new = new.with_changes(equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")))
        if not isinstance(node, cst.Call):
            self._made[node] = cst.Call(node, [new])
            return
        args = list(node.args)
        given = next((n for n, one in enumerate(args) if one.keyword and new.keyword and one.keyword.value == new.keyword.value), None)  # fmt: skip
        if given is not None:
            self._made[args[given].value] = new.value
            return
        if args:
            last = args[-1]
            comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
            new = new.with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
            args[-1] = last.with_changes(comma=comma, whitespace_after_arg=cst.SimpleWhitespace(""))
        self._made[node] = node.with_changes(args=[*args, new])

    def _with_lines(self, module: cst.Module, inserted: Sequence[SyntaxChange]) -> cst.Module:
        """A module with lines between its statements; those at one place in the order given."""
        body, header = list(module.body), list(module.header)
        texts: dict[Position, str] = {}
        for change in inserted:
            texts[change.range.start] = texts.get(change.range.start, "") + change.code
        for at, text in sorted(texts.items(), reverse=True):  # from below, so that the numbers above stay
            number = next((n for n, one in enumerate(self._source.module.body) if self._source.last_line(one) >= at.line), None)  # fmt: skip
            if number is None or at.column:
                raise _NotMadeError
            following = body[number]
            lines = [*(header if number == 0 else ()), *getattr(following, "leading_lines", ())]
            before = len(lines) - (self._source.first_line(self._source.module.body[number]) - at.line)
            code = parse_module(text)
            new = list(code.body)
            if not 0 <= before <= len(lines) or not new:
                raise _NotMadeError
            lead = [*lines[:before], *code.header, *getattr(new[0], "leading_lines", ())]
            if number == 0:
                header, lead = lead, []
            new[0] = new[0].with_changes(leading_lines=lead)
            body[number : number + 1] = [*new, following.with_changes(leading_lines=[*code.footer, *lines[before:]])]
        return module.with_changes(body=body, header=header)

    def _keep_comments(self, old: Sequence[cst.CSTNode], statement: cst.CSTNode | None) -> None:
        """Puts comments that would be gone above a statement."""
        lost = Counter(one for node in old for one in _comments_in(node))
        if old and hasattr(statement, "leading_lines") and statement is old[0]:  # those above stay where they are
            lines = getattr(old[0], "leading_lines", ())
            lost -= Counter(line.comment.value for line in lines if line.comment is not None)
        kept = lost & self._new
        self._new -= kept
        lost -= kept
        if not lost:
            return
        above = self._source.statement(statement) if statement is not None else None
        if above is None:
            raise _NotMadeError
        self._above.setdefault(above, []).extend(lost.elements())


class _Walk(cst.CSTTransformer):
    """Puts nodes in the place of others; a function makes one of the node as it is after changes inside of it."""

    def __init__(self, made: dict[cst.CSTNode, Made | Callable[[cst.CSTNode], Made]]) -> None:
        super().__init__()
        self._made = made

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> Made:  # type: ignore[override]
        made = self._made.get(original_node, updated_node)
        return made if isinstance(made, (cst.CSTNode, cst.FlattenSentinel, cst.RemovalSentinel)) else made(updated_node)


def _with_comments(made: Made | Callable[[cst.CSTNode], Made] | None, comments: Sequence[str]) -> Callable[[cst.CSTNode], Made]:  # fmt: skip
    """What takes the place of a statement, with comments above it."""
    lines = [cst.EmptyLine(comment=cst.Comment(one)) for one in comments]

    def change(updated: cst.CSTNode) -> Made:
        if made is None:
            return _led_by(updated, lines)
        if isinstance(made, cst.FlattenSentinel):
            first, *rest = made
            return cst.FlattenSentinel([_led_by(first, lines), *rest])
        if isinstance(made, cst.CSTNode):
            return _led_by(made, lines)
        raise _NotMadeError

    return change


def _led_by(node: _Node, lines: Sequence[cst.EmptyLine]) -> _Node:
    if not hasattr(node, "leading_lines"):
        raise _NotMadeError
    return node.with_changes(leading_lines=[*node.leading_lines, *lines])


def _last_line(node: cst.CSTNode) -> cst.SimpleStatementLine | cst.SimpleStatementSuite | None:
    """The last line of simple statements in a node."""
    if isinstance(node, (cst.SimpleStatementLine, cst.SimpleStatementSuite)):
        return node
    found = (_last_line(child) for child in reversed(node.children))
    return next((one for one in found if one is not None), None)


def _with_trailing(node: _Node, trailing: cst.TrailingWhitespace) -> _Node:
    """A statement with the comment that was at the end of another one."""
    last = _last_line(node)
    if last is None:
        raise _NotMadeError
    new = last.with_changes(trailing_whitespace=trailing)
    found = new if last is node else node.deep_replace(last, new)
    assert isinstance(found, type(node))
    return found


def _comments_in(node: cst.CSTNode) -> list[str]:
    own = [node.value] if isinstance(node, cst.Comment) else []
    return own + [one for child in node.children for one in _comments_in(child)]


def _comments_of(code: str) -> list[str]:
    if "#" not in code:
        return []
    try:
        return _comments_in(parse_module(code))
    except ValueError:
        return []
