"""``python boot.py kernel REQUEST ANSWER`` in the user's interpreter: runs kernels, as a file of JSON asks, and answers
in another.

Nothing of the store is executed but the kernel's own text, which `kernel_text` has checked.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from irscope.values.kernel.interpreter import reason_of
from irscope.values.kernel.kernel_text import NotAKernel
from irscope.values.kernel.launched import launch_of
from irscope.values.kernel.memory import Region
from irscope.values.kernel.programs import KernelRun


def main() -> None:
    """Answers requests; exits with 0 whatever the kernels do."""
    request_path, answer_path = sys.argv[2:4]
    with open(request_path, encoding="utf-8") as file:
        request = json.load(file)
    os.environ["TRITON_INTERPRET"] = "1"
    if int(request["memory"]):  # a sanitizer reserves more than there is
        _limit_memory(int(request["memory"]))
    with contextlib.redirect_stdout(sys.stderr):
        answer = [_answer(each) for each in request["requests"]]
    with open(answer_path, "w", encoding="utf-8") as file:
        json.dump(answer, file)


def _limit_memory(most: int) -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    try:
        import numpy  # noqa: F401
        import torch

        version = ""
        if "library" not in request:
            import triton

            version = triton.__version__
    except ImportError as error:
        return {"missing": error.name or "triton"}
    with contextlib.suppress(ImportError):
        import torch._higher_order_ops.flex_attention
        import torch._inductor.inductor_prims  # noqa: F401  operators that only Inductor's graphs have
    try:
        given: Mapping[str, Region] = {}
        if "script" in request:
            request, given = launch_of(request)
        own = {key: request[key] for key in ("file", "text") if "script" in request}
        return {**KernelRun(request, given).answer(), **own, "triton": version}
    except NotAKernel as error:
        return {"error": str(error)}
    except MemoryError:
        return {"error": f"The kernel needs more than {request['memory']} bytes."}
    except Exception as error:
        if os.environ.get("IRSCOPE_DEBUG"):
            raise
        return {"error": reason_of(error)}
