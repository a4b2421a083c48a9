"""The script that torchrun starts for each rank: ``irscope run`` in an interpreter that need not have irscope.

It loads the package from where this file is, without touching ``sys.path``.
"""

import importlib.util
import os
import sys


def main() -> None:
    """Runs the command ``irscope`` with the arguments of this process, and ends with torchrun."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path[:1] = []  # this file's folder
    init = os.path.join(package, "__init__.py")
    spec = importlib.util.spec_from_file_location("irscope", init, submodule_search_locations=[package])
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["irscope"] = module
    spec.loader.exec_module(module)
    from irscope.cli.main import main as command
    from irscope.system.warden import end_with_parent

    end_with_parent()
    sys.exit(command())


if __name__ == "__main__":
    main()
