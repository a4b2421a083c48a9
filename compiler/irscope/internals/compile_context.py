"""What PyTorch itself keeps of the compile that is going on in this thread (``torch._guards``; torch 2.9 to 2.15)."""

from __future__ import annotations

import sys
from typing import Any


def current_compile() -> tuple[str, int] | None:
    """PyTorch's id of the compile (``0/0``) and how often it was restarted; None outside of a compile."""
    guards: Any = sys.modules["torch._guards"]
    trace_id = guards.CompileContext.current_trace_id()
    return None if trace_id is None else (str(trace_id.compile_id), int(trace_id.attempt))


def traced_stack() -> list[Any]:
    """Dynamo's own stack of the code that it is tracing, as frame summaries; empty outside of a trace."""
    guards: Any = sys.modules.get("torch._guards")
    return list(guards.TracingContext.extract_stack()) if guards is not None else []
