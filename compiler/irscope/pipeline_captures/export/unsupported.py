"""A finding about an operator that a compiler of exported programs does not take."""

from __future__ import annotations

from typing import Any

from irscope.capture.nodes import NodeWriter
from irscope.pipelines.export.kinds import UNSUPPORTED_OPERATOR
from irscope.protocol import Compile, Finding, Origin
from irscope.usercode.source import range_of_focus
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.records import dataclass


@dataclass(frozen=True)
class Unsupported:
    """What is said about such an operator.

    Args:
        code: Who does not take it: ``no-onnx-function``.
    """

    code: str
    message: str
    explanation: str
    hints: tuple[str, ...] = ()


def finding_of(what: Unsupported, node: Any, compile: Compile, frames: NodeWriter) -> Finding:
    """The finding at the user's line of a node of the exported program; at the function if there is none.

    Args:
        node: PyTorch's ``torch.fx.Node``, or None.
    """
    trace = node.meta.get("stack_trace") or "" if node is not None else ""
    places = [Origin(file, line) for file, line, _ in frames.frames(trace) if is_user_file(file)]
    at = places[-1] if places else Origin(compile.file, compile.line)
    kind = UNSUPPORTED_OPERATOR
    return Finding(
        kind=kind.id, code=what.code, severity=kind.severity, message=what.message, explanation=what.explanation,
        hints=what.hints, link=None, file=at.file, range=range_of_focus(at.file, at.line), count=1,
        compiles=(compile.id,),
    )  # fmt: skip
