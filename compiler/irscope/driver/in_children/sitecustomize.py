"""Runs at the start of each interpreter that a script under capture starts: captures there, too, as soon as torch is imported.

The folder of this file is the first of ``PYTHONPATH`` there (`irscope.runner.starting`).  Both variables are taken back at
once, and the ``sitecustomize`` that the interpreter would have found runs.  It is written for old Pythons too.
"""

import os
import sys

AT_START = frozenset(sys.modules)
FOLDER = os.path.dirname(os.path.abspath(__file__))


class _Torch(object):
    """Sees the import of torch, and finds nothing."""

    def __init__(self, address):
        self.address = address

    def find_spec(self, name, path=None, target=None):
        if name == "torch" and self in sys.meta_path:
            sys.meta_path.remove(self)
            try:
                _capture(self.address)
            except Exception:  # the program must run as without irscope
                pass
        return None


def _capture(address):
    if "irscope" in sys.modules:
        return
    from importlib.util import module_from_spec, spec_from_file_location

    file = os.path.join(os.path.dirname(FOLDER), "boot.py")
    spec = spec_from_file_location("_irscope_boot", file)
    boot = module_from_spec(spec)
    spec.loader.exec_module(boot)
    boot.follow(address, AT_START)


def _take_back():
    """The variables and the path as the script meant them; the address of the driver."""
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    rest = os.pathsep.join(path[1:]) if path[0] == FOLDER else os.pathsep.join(path)
    os.environ.pop("PYTHONPATH", None)
    if rest:
        os.environ["PYTHONPATH"] = rest
    sys.path[:] = [folder for folder in sys.path if folder != FOLDER]
    return os.environ.pop("IRSCOPE_PROCESS", "")


if __name__ == "sitecustomize":
    import site

    ADDRESS = _take_back()
    if ADDRESS and sys.version_info >= (3, 10):
        sys.meta_path.insert(0, _Torch(ADDRESS))
    del sys.modules["sitecustomize"]
    site.execsitecustomize()  # the interpreter's own
    if "sitecustomize" not in sys.modules:
        raise ImportError("There is none, and `site` takes this for that.", name="sitecustomize")
