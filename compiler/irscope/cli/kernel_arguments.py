"""The arguments of ``irscope kernel``."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any

from irscope.cli.numbers import whole_number
from irscope.cli.shared_arguments import add_json_and_store, add_run, add_target

DESCRIPTION = """\
Runs one Triton kernel of a stored run by Triton's interpreter, without a GPU, and compares what it writes with the nodes of
the graph in eager mode and in float64.  It reports reads and writes outside of the tensors, reads of memory that nothing
wrote, races between programs, and the first value that is not finite, each at the kernel's statement and your line.

  irscope run --target h100 train.py && irscope kernel --kernel triton_poi_fused_gelu_view_1
  irscope kernel --kernel triton_poi_fused_gelu_view_1 --program 3,0 --step
  irscope kernel --kernel my_kernel --script train.py

Inputs are what `irscope values SCRIPT --stage all` kept of the same script, else made from their shapes.  The interpreter of
the script needs triton, which needs no GPU: python -m pip install --no-deps triton==3.7.1"""


def add_to(kernel: argparse.ArgumentParser) -> None:
    """Adds all of them to a parser."""
    kernel.description = DESCRIPTION
    add_json_and_store(kernel)
    add_run(kernel)
    kernel.add_argument("--kernel", metavar="NAME", required=True, help="the kernel, or the ID of its stage")
    kernel.add_argument("--script", metavar="FILE", help="run this script by the interpreter up to its own launch of the kernel, and check that; tensors must be on the CPU")  # fmt: skip
    kernel.add_argument("--arguments", metavar="ARGUMENT", nargs="*", default=[], help="arguments of that script")
    kernel.add_argument("--compile", metavar="ID", help="the compile of a kernel that several have, as in 0/0/h100")
    add_target(kernel)
    kernel.add_argument("--program", metavar="X,Y,Z", type=_program, help="run this program alone (default: all, if they take less than 60 s)")  # fmt: skip
    kernel.add_argument("--launch", metavar="N", type=whole_number("launches", 1, 10**6), default=1, help="which of its launches (default: the first)")  # fmt: skip
    kernel.add_argument("--step", action="store_true", help="list what each statement of one program makes")
    kernel.add_argument("--watch", metavar="ELEMENT", nargs="+", type=_element, default=[], help="list who reads and writes elements, as in out_ptr0[17]")  # fmt: skip
    kernel.add_argument("--made-inputs", action="store_true", help="make the inputs even if a run kept values")
    kernel.add_argument("--trust", metavar="DIGEST", default="", help="compile and execute a C++ kernel of another store or an opened trace: the SHA-256 of its text, or the first 12 digits")  # fmt: skip
    kernel.add_argument("--python", metavar="PATH", default=sys.executable, help="interpreter that has torch and triton (default: %(default)s)")  # fmt: skip
    kernel.set_defaults(do=("kernels", "kernel"))


def _element(text: str) -> dict[str, Any]:
    found = re.fullmatch(r"(\w+)\[(\d{1,15})\]", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"an element is a parameter and an index, as in out_ptr0[17]: {text!r}")
    return {"argument": found[1], "index": int(found[2])}


def _program(text: str) -> list[int]:
    parts = text.split(",")
    if not 1 <= len(parts) <= 3 or not all(part.strip().isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(f"a program is one to three indices, as in 3,0: {text!r}")
    return [int(part) for part in parts]
