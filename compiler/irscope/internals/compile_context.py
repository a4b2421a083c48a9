"""What PyTorch itself keeps of the compile that is going on in this thread."""

from __future__ import annotations

import sys
from typing import Any

from irscope.internals.names import PrivateName

_MODULE = "torch._guards"
_COMPILE = PrivateName("which compile is going on", _MODULE, "CompileContext", "2.9 to 2.15")
_TRACING = PrivateName("the code that Dynamo is tracing", _MODULE, "TracingContext", "2.9 to 2.15")


def current_compile() -> tuple[str, int] | None:
    """PyTorch's id of the compile (``0/0``) and how often it was restarted; None outside of a compile."""
    context = _COMPILE.find()
    trace_id = None if context is None else context.current_trace_id()
    return None if trace_id is None else (str(trace_id.compile_id), int(trace_id.attempt))


def current_ids() -> dict[str, Any] | None:
    """What a record of PyTorch's trace says about the compile that it belongs to; empty outside of a compile,
    None if PyTorch's ids are not as expected.
    """
    context = _COMPILE.find()
    if context is None:
        return None
    trace_id = context.current_trace_id()
    if trace_id is None:
        return {}
    try:
        of, attempt = trace_id.compile_id, trace_id.attempt
        ids = {name: getattr(of, name) for name in ("compiled_autograd_id", "frame_id", "frame_compile_id")}
    except AttributeError:
        return None
    return {**{name: id for name, id in ids.items() if id is not None}, "attempt": attempt}


def traced_stack() -> list[Any]:
    """Dynamo's own stack of the code that it is tracing, as frame summaries; empty outside of a trace."""
    context = _TRACING.find() if _MODULE in sys.modules else None
    return list(context.extract_stack()) if context is not None else []
