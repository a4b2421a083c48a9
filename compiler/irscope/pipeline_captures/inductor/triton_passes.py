"""``python triton_passes.py FOLDER`` in the user's interpreter: compiles a module and lets MLIR print each pass.

FOLDER holds ``kernel.ttir``, the module before the first pass, and ``metadata.json``, how it was compiled.  For each
stage down to LLVM IR this writes ``<stage>.dump``, what MLIR printed before each pass, and ``<stage>.txt``, the result.
Nothing is executed and no GPU is needed.  Prints one line of JSON: ``stages`` and ``triton``, or ``error``.

Checked on triton 3.6, 3.7 and 3.9.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
from typing import Any


def compile_in(folder: str) -> dict[str, Any]:
    """Compile the kernel in a folder once more; what MLIR prints and each stage are written there as files."""
    os.environ["MLIR_ENABLE_DUMP"] = "1"
    os.environ.pop("MLIR_DUMP_PATH", None)
    import triton
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import make_backend

    with open(os.path.join(folder, "metadata.json"), encoding="utf-8") as file:
        metadata = json.load(file)
    target = metadata["target"]
    backend = make_backend(GPUTarget(target["backend"], target["arch"], target["warp_size"]))
    # Where the run's triton lay need not be where this one lies.
    kept = {key: value for key, value in metadata.items() if key not in ("extern_libs", "target", "hash")}
    options = backend.parse_options({key: tuple(v) if isinstance(v, list) else v for key, v in kept.items()})
    stages: dict[str, Any] = {}
    arguments: list[Any] = [stages, options]
    if len(inspect.signature(backend.add_stages).parameters) > 2:
        from triton.backends.compiler import Language

        arguments.append(Language.TRITON)
    backend.add_stages(*arguments)

    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    module = ir.parse_mlir_module(os.path.join(folder, "kernel.ttir"), context)
    module.context = context
    facts: dict[str, Any] = {"target": target, **options.__dict__}
    made = []
    for stage in ("ttir", "ttgir", "llir"):
        with open(os.path.join(folder, stage + ".dump"), "w", encoding="utf-8") as dump:
            os.dup2(dump.fileno(), 2)  # the variable MLIR_DUMP_PATH is read but once
        module = stages[stage](module, facts)
        with open(os.path.join(folder, stage + ".txt"), "w", encoding="utf-8") as file:
            file.write(str(module))
        made.append(stage)
    return {"stages": made, "triton": triton.__version__}


def main() -> None:
    """Write the answer for the folder that is named to stdout, as one JSON line, and exit."""
    answer_to = os.dup(1)
    os.dup2(2, 1)  # what anything else prints is not an answer
    try:
        answer = compile_in(sys.argv[1])
    except ImportError as error:
        advice = "Name the interpreter that ran the script: --python PATH or IRSCOPE_PYTHON."
        answer = {"error": f"{sys.executable} has no triton ({error}). {advice}"}
    except Exception as error:  # noqa: BLE001  whatever it is, it is said
        answer = {"error": f"This triton cannot compile the kernel once more: {type(error).__name__}: {error}"}
    os.write(answer_to, ("\n" + json.dumps(answer) + "\n").encode())
    os._exit(0)  # compilers' threads need not be waited for


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if path != here]  # no place to import from
    main()
