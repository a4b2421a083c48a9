"""Graph breaks at an operator of the user's whose fake implementation does not take the operator's arguments."""

from __future__ import annotations

import os

from irscope.events.break_message import BreakMessage
from irscope.events.stack import FramePlace, name_of_code
from irscope.findings.deliberate import words
from irscope.fixing.advice.model import Option, Words
from irscope.internals.fake_kernels import FakeKernel, fake_kernel
from irscope.protocol import Related, RelatedRole
from irscope.usercode.source import function_at, range_of_line, range_of_name
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.patterns import pattern

_REFUSED = "GB0112"
_CALLED = pattern(r"TypeError (?P<library>\w+)\.(?P<name>\w+)\.\w+: (?P<text>.*)")


def fake_that_refuses(message: BreakMessage | None) -> tuple[str, FakeKernel] | None:
    """The operator and its fake implementation, if that is the user's and raised the error of a message."""
    said = _CALLED.match(message.context) if message is not None and message.code == _REFUSED else None
    operator = f"{said['library']}::{said['name']}" if said is not None else ""
    fake = fake_kernel(operator) if operator else None
    return (operator, fake) if fake is not None and is_user_file(fake.code.co_filename) else None


def words_of(message: BreakMessage, operator: str, fake: FakeKernel, place: FramePlace, whole: str) -> Words:
    """The words: what its signature must be.

    Args:
        whole: What runs as plain Python; empty if the graph is cut.
    """
    said = _CALLED.match(message.context)
    defined = related_of(fake)
    line = f"line {defined.range.start.line}"
    at = line if defined.file == place.file else f"{os.path.basename(defined.file)}, {line}"
    what = f"the fake implementation of `{operator}` ({at}) does not take the arguments of the operator"
    why = f"Compiled code calls it in place of the operator, to learn the shape of the result. {said['text'] if said else ''}."
    name = name_of_code(fake.code).rpartition(".")[2]
    option = Option("Give it the arguments of the operator", f"def {name}({', '.join(fake.arguments)}):")
    return words(what, whole, why, (option,))


def related_of(fake: FakeKernel) -> Related:
    """The fake implementation as the place of the cause."""
    file, line = fake.code.co_filename, fake.code.co_firstlineno
    node = function_at(file, fake.code.co_name, line)
    where = range_of_name(file, node) if node is not None else range_of_line(file, line)
    return Related(file, where, "the fake implementation, which is the cause", RelatedRole.CAUSE)
