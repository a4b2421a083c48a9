"""What Inductor was compiling when it failed, as a script that raises the same error by itself.

Inductor writes each graph as such a script before it begins with it, with random inputs of the same shapes and dtypes.
"""

from __future__ import annotations

import os
import re
import textwrap
import traceback

from irscope.internals.frames import FrameLook, is_in

WRITTEN = FrameLook(
    what="the script that shows a failed compile by itself",
    function="codegen_and_compile",
    file="torch/_inductor/compile_fx.py",
    local="runnable_graph_str",
    fits=lambda value: isinstance(value, str),
    versions="2.13",
    required=False,
)
_OURS = re.compile(
    r"^(?:os\.environ\['(?:_?TORCHINDUCTOR_(?:CACHE_DIR|PYOBJECT_TENSOR_DATA_PTR)|TORCH_TRACE)'\]"
    r"|torch\._inductor\.config\.(?:trace\.provenance|fx_graph_)).*\n",
    re.MULTILINE,
)
"""Settings that are this machine's or this capture's."""
_OPERATOR = re.compile(r"\btorch\.ops\.(\w+)\.")
_NAMESPACES = ("aten", "prims", "prim", "inductor", "inductor_prims", "higher_order", "quantized", "mkldnn", "mkl")
_NO_NUMBER = re.compile(r"\breader\.symint\((?!-?\d)")
_HEAD = '''"""{error}

A script of PyTorch's own, with random inputs.  `python FILE` should raise this.
"""
'''
_SAVED = (
    (r"(save_dir=)'[^'\n]*'", r"\1None"),
    (r"(reader\.storage\()'[^'\n]*'", r"\1None"),
    (r"(def load_args\(reader\):\n)(?! )", r"\1    pass\n"),
)
"""The inputs that the minifier has saved are random, too; without inputs its `load_args` has no body (torch 2.13)."""


def forward_stack(error: BaseException) -> str:
    """The printed stack of the operation whose backward raised an error, as anomaly mode keeps it; empty if none did."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_name == "apply" and is_in(frame.f_code, "torch/autograd/function.py"):
            return "".join(getattr(frame.f_locals.get("self"), "metadata", {}).get("traceback_", ()))
    return ""


def script_of(error: BaseException | None) -> str | None:
    """The text of the script; None if the error was not raised by Inductor, or if the script would fail in another way."""
    frames = [] if error is None else [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    text = next((WRITTEN.read(frame) for frame in frames if WRITTEN.is_at(frame)), None)
    if text is None or not _stands_alone(text):
        return None
    told = re.sub(r'[\\"]', "'", " ".join(f"{error}".strip().split("\n\n")[0].split()))
    return _HEAD.format(error=textwrap.fill(told, 110)) + _OURS.sub("", text.strip("\n") + "\n")


def first_line(error: BaseException | None) -> str:
    """What Python prints of an error in the line with its type, as far as a bounded field has it."""
    return str(error).strip().split("\n")[0].strip()[:300]


def repeated(line: str) -> str:
    """The longest part of `first_line` that the error's ``repr`` has, too, where the minifier looks for it."""
    return max(re.split(r"[\\'\"]", line), key=len)


def minified(script: str, folder: str) -> str | None:
    """The script that the minifier wrote into a folder, with the head and the settings of the one that it was given; None
    if it wrote none, or one that is as large."""
    try:
        with open(os.path.join(folder, "repro.py"), encoding="utf-8") as file:
            text = _OURS.sub("", file.read())
    except (OSError, ValueError):
        return None
    for form, instead in _SAVED:
        text = re.sub(form, instead, text)
    head = script[: script.index("import os\n")] if "import os\n" in script else ""
    return head + text.strip("\n") + "\n" if text.count("torch.ops.") < script.count("torch.ops.") else None


def _stands_alone(text: str) -> bool:
    """Whether a script needs nothing of the user's: an operator that is defined elsewhere, or a size without a number."""
    return all(name in _NAMESPACES for name in _OPERATOR.findall(text)) and not _NO_NUMBER.search(text)
