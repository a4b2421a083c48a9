"""Makes a store of a run whose stages are given: `texts_store.py STORE FOLDER < {"STAGE": ["LANGUAGE", "TEXT"], …}`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from irscope.protocol import Compile, CompileOutcome, Lane, Outcome, OutcomeKind, StageRef
from irscope.store.store import Store
from irscope.usercode.source import digest_of

SOURCE = "import torch\n\ntorch.compile(torch.relu)(torch.ones(1))\n"


def main(path: str, folder: str) -> None:
    script = Path(folder) / "texts.py"
    script.write_text(SOURCE, encoding="utf-8")
    with Store(path) as store:
        run = store.create_run(str(script), [], Lane.DEEP, digest_of(SOURCE))
        store.put_compile(run, Compile("0/0", "relu", str(script), 3, CompileOutcome.COMPILED, 0, 1, 0.5, ()))
        for position, (name, (language, text)) in enumerate(json.load(sys.stdin).items()):
            stage = StageRef(f"0/0/{name}", name, language, len(text.encode()))
            store.put_stage(run, "0/0", stage, text, float(position), None)
        store.put_source(run, str(script), SOURCE)
        store.set_outcome(run, Outcome(OutcomeKind.COMPLETED, 0, "", 1.0))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
