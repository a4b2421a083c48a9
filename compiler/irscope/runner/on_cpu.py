"""Has a program that names CUDA run on the CPU: of a run with targets, whose kernels are those of devices that are not
here.

The names of devices in the user's files are read as the CPU's, without writing to the files, and so are those among the
script's arguments.  What PyTorch has for CUDA alone is replaced (`irscope.internals.cuda_on_cpu`).
"""

from __future__ import annotations

import ast
import importlib.machinery
import os
import types
from collections.abc import Sequence
from typing import Any

from irscope.usercode.cuda_names import OnCpu, names_cuda
from irscope.usercode.kept_on_cpu import FILES, KeptOnCpu
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.suggestions import listed

_HIDDEN = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")

_changed: dict[str, list[int]] = {}
_is_on = False


def redirect() -> None:
    """From now on in this process."""
    global _is_on
    _is_on = True
    for name in _HIDDEN:  # CUDA and ROCm read them when they are first used
        os.environ[name] = ""
    loader: Any = importlib.machinery.SourceFileLoader
    path_stats, source_to_code = loader.path_stats, loader.source_to_code

    def stats(self: Any, path: str) -> Any:
        if is_user_file(path):
            raise OSError("the compiled file on disk is of the text as it is")
        return path_stats(self, path)

    def to_code(self: Any, data: Any, path: Any, **options: Any) -> Any:
        if is_user_file(str(path)) and isinstance(data, (bytes, str)):
            return compiled(data, str(path))
        return source_to_code(self, data, path, **options)

    loader.path_stats, loader.source_to_code = stats, to_code


def compiled(text: bytes | str, name: str, flags: int = 0) -> types.CodeType:
    """``compile(…)`` of a file of the user's; on the CPU if `redirect` was called.  Raises SyntaxError and ValueError."""
    if not _is_on:
        return _code(text, name, flags)
    tree: ast.Module = compile(text, name, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
    kept, change = KeptOnCpu(), OnCpu()
    kept.visit(tree)
    change.visit(tree)
    if not change.lines:
        return _code(text, name, flags)
    _changed[name], FILES[name] = change.lines, kept
    return _code(tree, name, flags)


def _code(source: bytes | str | ast.Module, name: str, flags: int) -> types.CodeType:
    code: types.CodeType = compile(source, name, "exec", flags, dont_inherit=True)
    return code


def arguments(given: Sequence[str]) -> list[str]:
    """The arguments of the script; on the CPU if `redirect` was called."""
    if not _is_on:
        return list(given)
    return [each.replace("cuda", "cpu") if names_cuda(each.rpartition("=")[2]) else each for each in given]


def is_cuda_named() -> bool:
    """Whether CUDA is named in a file of the user's that was loaded."""
    return bool(_changed)


def what_changed() -> str:
    """Where CUDA was named, in words for the user; empty if it was not."""
    places = [f"{os.path.basename(file)}:{line}" for file, lines in _changed.items() for line in lines]
    return listed(places[:5]) + (f" and {len(places) - 5} more places" if len(places) > 5 else "") if places else ""
