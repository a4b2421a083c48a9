"""The arguments that most commands have."""

from __future__ import annotations

import argparse
import os
import sys

from irscope.store.file import default_path


def add_json_and_store(command: argparse.ArgumentParser) -> None:
    """Adds whether data is printed, and where runs are kept."""
    command.add_argument("--json", action="store_true", help="print data instead of text (docs/json.md)")
    add_store(command)


def add_target(
    command: argparse.ArgumentParser, more: str = "", what: str = "what `irscope run --target` predicted"
) -> None:
    """Adds the target of the run that is asked about; ``what`` is asked, and ``more``: what else it stands for."""
    from irscope.targets.catalogue import catalogue  # here: `irscope run` begins without it

    command.add_argument(
        "--target",
        metavar="TARGET",
        choices=sorted(catalogue().targets),
        help=f"of {what} for this device (irscope targets){more}",
    )


def add_store(command: argparse.ArgumentParser) -> None:
    """Adds where runs are kept."""
    command.add_argument(
        "--store",
        metavar="FILE",
        default=default_path(),
        help="file of the run store (default: %(default)s; variable IRSCOPE_STORE)",
    )


def add_python(command: argparse.ArgumentParser, what: str = "interpreter that runs the script") -> None:
    """Adds which interpreter is used, and says for what."""
    command.add_argument(
        "--python",
        metavar="PATH",
        default=os.environ.get("IRSCOPE_PYTHON") or sys.executable,
        help=f"{what} (default: %(default)s; variable IRSCOPE_PYTHON)",
    )


def add_run(command: argparse.ArgumentParser) -> None:
    """Adds which run of the store is asked about."""
    command.add_argument("run", metavar="RUN", nargs="?", help="run ID or prefix (default: the newest)")


def add_cwd(command: argparse.ArgumentParser) -> None:
    """Adds where the script runs."""
    command.add_argument("--cwd", metavar="DIR", help="working folder of the script (default: the current one)")
