"""Constants of TorchScript as they are written in Python."""

from __future__ import annotations

import ast
import re

from irscope.ir.torchscript import tensor_type


def literal(type_: str, attributes: str) -> str | None:
    """What is written for a constant; None for a tensor that is more than a number."""
    if not attributes:
        return "None"
    written = attributes.partition("=")[2]
    if tensor_type(type_) is not None or type_ == "Tensor":
        number = re.fullmatch(r"\{(.*)\}", written)
        return number[1] if number and _is_literal(number[1]) else "torch.tensor(...)"
    if annotated := re.fullmatch(r"annotate\(.*?\], (\[.*\])\)", written):
        written = annotated[1]
    if attributes.startswith('name="'):  # a function
        written = attributes.removeprefix("name=").partition(",")[0]
    return written if _is_literal(written) else repr(written)


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False
    return True
