"""Graphviz: from DOT to a picture, in a bounded time.

Its program is run directly.  The PyPI package `graphviz` runs the same program, but cannot end it, and it may take hours.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from irscope.system.commands import run_bounded, temporary_folder
from irscope.vocabulary.units import duration
from irscope.vocabulary.visible import bounded, printable

_ENGINES = {
    "dot": ["-Kdot"],
    "sfdp": ["-Ksfdp", "-Goverlap=prism", "-Gsplines=line"],
}
"""In this order: the first draws layers and frames; the second draws any graph, without frames."""


class RenderingError(Exception):
    """No picture could be made; the message says why and what to do."""


def render(dot: str, format: str, seconds: float) -> tuple[bytes, str]:
    """The picture, and which engine of Graphviz laid it out: a later one where the first is not ready in time.

    Args:
        format: As Graphviz's option -T names it.
        seconds: For each engine.

    Raises RenderingError.
    """
    program = shutil.which("dot")
    if program is None:
        raise RenderingError(
            "The program `dot` of Graphviz is missing. Install Graphviz (apt install graphviz, brew install graphviz), "
            "or write DOT, which does not need it: -o FILE.dot."
        )
    with temporary_folder() as folder:
        path = Path(folder) / f"picture.{format}"
        for engine, options in _ENGINES.items():
            command = [program, *options, f"-T{format}", "-o", os.fspath(path)]
            try:
                done = run_bounded(command, seconds, text=dot, cwd=folder)
            except subprocess.TimeoutExpired:
                continue
            except OSError as error:
                raise RenderingError(f"{program} cannot be started: {error.strerror or error}.") from error
            if done.returncode != 0 or not path.is_file():
                said = printable(bounded(" ".join(done.stderr.split()), 500))
                raise RenderingError(f"Graphviz failed with exit code {done.returncode}: {said or 'it said nothing'}.")
            return path.read_bytes(), engine
    raise RenderingError(
        f"Graphviz was not ready after {duration(seconds)} with {' or '.join(_ENGINES)}. Draw less (--depth, "
        "--max-nodes), give it more time (--timeout), or write DOT: -o FILE.dot."
    )
