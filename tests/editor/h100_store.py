"""Makes a run store of a run that was captured on an NVIDIA H100: `h100_store.py STORE FOLDER`; the script is put into FOLDER.

`h100_run.json` is what irscope captured of `block.py` there (torch 2.11.0+cu130, triton 3.6.0), from the Dynamo graph
down to SASS; folders are replaced by `/home/user`, `/cache` and `/site-packages`.  The rows of SASS are set as they are
set today (`lowering.sass.moved_left`).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from irscope.lowering.sass import moved_left
from irscope.protocol import Compile, Kernel, Lane, Outcome, OutcomeKind, StageRef, from_json
from irscope.store.store import Store
from irscope.usercode.source import digest_of

CAPTURED = Path(__file__).with_name("h100_run.json")
SCRIPT = "/home/user/block.py"


def main(path: str, folder: str) -> None:
    script = Path(folder) / "block.py"
    captured = json.loads(CAPTURED.read_text(encoding="utf-8").replace(SCRIPT, str(script)))
    source = captured["sources"][str(script)]
    script.write_text(source, encoding="utf-8")
    with Store(path) as store:
        run = store.create_run(str(script), [], Lane.DEEP, digest_of(source))
        store.set_torch(run, captured["torch"])
        for compile, stages in captured["compiles"]:
            store.put_compile(run, from_json(Compile, compile))
            for position, (stage, text, data) in enumerate(stages):
                if stage["name"] == "sass":
                    text = "\n".join(map(moved_left, text.split("\n")))
                store.put_stage(run, compile["id"], from_json(StageRef, stage), text, float(position), data)
        for kernel in captured["kernels"]:
            store.put_kernel(run, from_json(Kernel, kernel))
        store.put_source(run, str(script), source)
        store.set_outcome(run, Outcome(OutcomeKind.COMPLETED, 0, "", 1.0))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
