"""What ``torch.export`` tells in private names only: guards, the report of draft export, and marks on tensors."""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import traceback
import types
from collections.abc import Iterator
from typing import Any

from irscope.internals.frames import FrameLook
from irscope.internals.hooks import Hook, Undo, replace_attribute
from irscope.usercode.user_files import is_irscope_file, is_package_file, is_user_file


def flatten(value: Any) -> tuple[list[Any], Any]:
    """The leaves of nested arguments, and what they were nested in, as ``torch.export`` sees both (torch 2.1 and later)."""
    leaves, nesting = sys.modules["torch"].utils._pytree.tree_flatten(value)
    return leaves, nesting


def unflatten(leaves: list[Any], nesting: Any) -> Any:
    """The reverse of `flatten` (torch 2.1 and later)."""
    return sys.modules["torch"].utils._pytree.tree_unflatten(leaves, nesting)


def guards_of(exported: Any) -> tuple[str, ...]:
    """The checks of an exported program on its inputs, as Python (torch 2.9 and later); empty if it has none."""
    return tuple(str(line) for line in getattr(exported, "_guards_code", None) or ())


def report_of(exported: Any) -> Any:
    """The report of draft export (torch 2.6 and later); None if there is none."""
    return getattr(exported, "_report", None)


def dynamic_dimensions(tensor: Any) -> frozenset[int]:
    """The dimensions that ``torch._dynamo.mark_dynamic`` and ``maybe_mark_dynamic`` marked (torch 2.9 and later)."""
    names = ("_dynamo_dynamic_indices", "_dynamo_weak_dynamic_indices")
    return frozenset(number for name in names for number in getattr(tensor, name, None) or ())


def file_names(report: Any) -> dict[int, str]:
    """The files that a report of draft export names by number.

    The report knows only those that PyTorch's trace named for the first time while it was made; the others are in the
    table of the process (torch 2.9 and later).
    """
    table = getattr(sys.modules.get("torch._logging.structured"), "INTERN_TABLE", None) or {}
    return {**{number: file for file, number in table.items()}, **report.str_to_filename}


def frames_hook() -> Hook:
    """Keeps all frames of the user's and of packages in the stack traces of an exported program's nodes.

    PyTorch keeps those of functions called ``forward`` alone (torch 2.6 to 2.13); without the hook, nodes of an exported
    function have no line, and those of a helper that ``forward`` calls have the line of the call.
    """

    def apply(proxy: types.ModuleType) -> Undo:
        tracer: Any = proxy.__dict__["TracerBase"]
        original = tracer._filter_traceback_frames

        def filtered(self: Any, summary: traceback.StackSummary) -> traceback.StackSummary:
            kept = original(self, summary)
            names = [frame.name for frame in summary]
            if not getattr(self, "_record_forward_stack_traces_only", False) or "forward" not in names:
                return kept  # type: ignore[no-any-return]
            usual = {id(frame) for frame in kept}
            below = list(summary)[names.index("forward") :]
            return traceback.StackSummary.from_list([frame for frame in below if _is_shown(frame, usual)])

        return replace_attribute(tracer, "_filter_traceback_frames", filtered)

    return Hook("the lines of an exported program's nodes", "torch.fx.proxy", "2.13", apply)


def _is_shown(frame: traceback.FrameSummary, usual: set[int]) -> bool:
    if is_user_file(frame.filename) or is_package_file(frame.filename):
        return True
    return id(frame) in usual and not is_irscope_file(frame.filename)


_UNTRANSLATED = FrameLook(
    what="the line of an operator that cannot be translated to ONNX",
    function="_translate_fx_graph",
    file="torch/onnx/_internal/exporter/_core.py",
    local="node",
    fits=lambda node: hasattr(node, "meta"),
    versions="2.13",
)


def untranslated_node(error: BaseException | None) -> Any:
    """The node at which ``torch.onnx.export`` stopped with an error; None if it is not known."""
    while error is not None:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if _UNTRANSLATED.is_at(frame):
                return _UNTRANSLATED.read(frame)
        error = error.__cause__
    return None


@contextlib.contextmanager
def silence() -> Iterator[io.StringIO]:
    """Keeps what is printed and logged by torch while a program is traced away from the script's output.

    Gives what the traced program printed: text on stdout.
    """
    printed = io.StringIO()
    handlers = list(_printing_handlers())
    for handler in handlers:
        handler.addFilter(_nothing)
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            yield printed
    finally:
        for handler in handlers:
            handler.removeFilter(_nothing)


def _printing_handlers() -> Iterator[logging.Handler]:
    loggers = logging.Logger.manager.loggerDict
    for name, logger in tuple(loggers.items()):
        is_torch = name.partition(".")[0] == "torch" and name != "torch.__trace"
        if is_torch and isinstance(logger, logging.Logger):
            yield from (handler for handler in logger.handlers if isinstance(handler, logging.StreamHandler))


def _nothing(_record: logging.LogRecord) -> bool:
    return False
