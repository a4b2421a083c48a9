"""The model after each transformation pass, which OpenVINO writes to files while it compiles.

This is done in a separate process: a variable of the environment turns it on, and the files go to the current folder.
"""

from __future__ import annotations

import glob
import os
import re
import sys
from typing import Any

from irscope.system.commands import run_bounded, temporary_folder
from irscope.vocabulary.records import dataclass

MOST_BYTES = 8 << 20
"""The most bytes of a model's constants.  OpenVINO writes them after each of some 300 passes, though they are removed
at once."""
SECONDS = 120.0
_PROGRAM = """\
import glob, os, sys, threading
import openvino
core = openvino.Core()
model = core.read_model(sys.argv[1])
os.environ["OV_ENABLE_SERIALIZE_TRACING"] = "true"
done = threading.Event()
def remove_constants():
    while not done.wait(0.02):
        for path in glob.glob("*.bin"):
            os.unlink(path)
thread = threading.Thread(target=remove_constants)
thread.start()
try:
    core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
finally:
    done.set()
    thread.join()
"""
_FILE = re.compile(r"(?P<model>Model\d+)_(?P<number>\d+)_(?P<name>.*)\.xml$")


@dataclass(frozen=True)
class Passed:
    """The text of a model after a pass that changed it."""

    name: str
    text: str


def passes_of(model: Any, openvino: Any) -> list[Passed]:
    """The passes that change a model while it is compiled.  Raises OSError or ValueError if they cannot be seen."""
    with temporary_folder() as folder:
        path, traced = os.path.join(folder, "model.xml"), os.path.join(folder, "passes")
        openvino.save_model(model, path, compress_to_fp16=False)
        if os.path.getsize(path.replace(".xml", ".bin")) > MOST_BYTES:
            raise ValueError("its constants are so large that OpenVINO would take long to write them after each pass")
        os.mkdir(traced)
        done = run_bounded([sys.executable, "-c", _PROGRAM, path], SECONDS, cwd=traced, env=dict(os.environ))
        if done.returncode != 0:
            raise ValueError(done.stderr.strip().rpartition("\n")[2] or "OpenVINO failed")
        return changes_in(traced)


def changes_in(folder: str) -> list[Passed]:
    """The passes that changed the model of the most passes; the others are parts of it that the plugin compiles."""
    found: dict[str, list[tuple[int, str, str]]] = {}
    for path in glob.glob(os.path.join(glob.escape(folder), "*.xml")):
        if match := _FILE.match(os.path.basename(path)):
            found.setdefault(match["model"], []).append((int(match["number"]), match["name"], path))
    changes: list[Passed] = []
    last = ""
    whole: list[tuple[int, str, str]] = max(found.values(), key=lambda passes: len(passes), default=[])
    for _, name, path in sorted(whole):
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        shape = _IDS.sub("", text)
        if shape != last:
            changes.append(Passed(name.rpartition("::")[2], text))
        last = shape
    return changes


_IDS = re.compile(r"<net name=\"[^\"]*\"")
