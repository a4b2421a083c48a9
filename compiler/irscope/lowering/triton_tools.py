"""``python triton_tools.py`` in the user's interpreter: where its triton keeps the tools that it ships.

Prints one line of JSON.  Looks for files only: neither triton nor torch is imported.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys

_NAMES = ("nvdisasm", "ptxas", "ptxas-blackwell")


def tools() -> dict[str, str]:
    """Paths of the tools by name; empty if triton is missing or ships no tools."""
    spec = importlib.util.find_spec("triton")
    for folder in spec.submodule_search_locations or () if spec else ():
        found = {name: os.path.join(folder, "backends", "nvidia", "bin", name) for name in _NAMES}
        return {name: path for name, path in found.items() if os.path.isfile(path) and os.access(path, os.X_OK)}
    return {}


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if path != here]  # no place to import from
    print(json.dumps(tools()))
