"""Which torch this interpreter has, without importing it."""

from __future__ import annotations

import importlib.util
import os
import re
import sys

from irscope.usercode.user_files import is_installed_file

OLDEST_TORCH = (2, 9)


def find_torch() -> tuple[str, str] | str:
    """Torch's folder and version without importing it; a message for the user where it cannot be used."""
    try:
        spec = importlib.util.find_spec("torch")
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None:
        places = spec.submodule_search_locations if spec is not None else None
        found = f"`import torch` finds the folder {next(iter(places))}, which is not PyTorch. " if places else ""
        return (
            f"{found}PyTorch is not installed in {sys.executable}. Install torch there (pip install torch), "
            "or choose another interpreter (--python PATH, or the setting irscope.python)."
        )
    folder = os.path.dirname(spec.origin)
    try:
        with open(os.path.join(folder, "version.py"), encoding="utf-8") as file:
            match = re.search(r"__version__\s*=\s*['\"]([^'\"]+)", file.read())
    except OSError:
        match = None
    if spec.submodule_search_locations is None or (match is None and not is_installed_file(spec.origin)):
        return (
            f"`import torch` finds {spec.origin}, which is not PyTorch: it hides the package of that name. Rename it."
        )
    if match is None:
        return f"{folder} does not look like PyTorch: it has no version. Reinstall torch in {sys.executable}."
    numbers = tuple(int(part) for part in re.findall(r"\d+", match[1])[:2])
    if numbers < OLDEST_TORCH:
        return (
            f"PyTorch {match[1]} in {sys.executable} is too old: irscope needs "
            f"{OLDEST_TORCH[0]}.{OLDEST_TORCH[1]} or newer. Upgrade it, or choose another interpreter."
        )
    return folder, match[1]
