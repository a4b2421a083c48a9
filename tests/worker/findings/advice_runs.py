"""Runs many small files with a function ``f`` and its arguments in one captured run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irscope.fixing.advice import Option
from irscope.protocol import CompileOutcome, Report, from_json
from support import Ran, run_forked

DRIVER = """
import json
import random
import runpy
import sys

import torch

import irscope.fixing.advice as advice
from irscope.fixing.advice import RULES
from irscope.fixing.advice.spot import Spot
from irscope.protocol import to_json

# Not asked for here: PyTorch empties the processor's caches before it measures, for each compile.
torch._dynamo.guards.profile_guard_manager = lambda *args: 0.0

out, *paths = sys.argv[1:]
options, failures = {}, []
speak = advice.words_for


def noting(context):
    words = speak(context)
    code = context.messages[0].code if context.messages else ""
    options.setdefault(f"{context.file}:{code}", to_json(words.options))
    try:
        if code in RULES and context.node is not None:
            RULES[code](Spot(context))
    except Exception as error:
        failures.append(f"{context.file}: {type(error).__name__}: {error}")
    return words


advice.words_for = noting
results = {}
settings = torch._dynamo.config.save_config()
for path in paths:
    torch._dynamo.reset()
    torch.manual_seed(0)
    random.seed(0)
    try:
        script = runpy.run_path(path)
        result = torch.compile(script["f"], backend="eager")(*script["ARGS"])
        results[path] = repr(list(result) if hasattr(result, "__next__") else result)
    except Exception as error:
        results[path] = f"{type(error).__name__}: {error}"
    torch._dynamo.config.load_config(settings)
with open(out, "w") as file:
    json.dump({"options": options, "results": results, "failures": failures}, file)
"""


@dataclass(frozen=True)
class Session:
    """What one run over many small files gave."""

    report: Report
    options: dict[str, list[Option]]
    results: dict[str, str]

    def codes(self, path: Path) -> list[str]:
        return [
            f.code for f in self.report.findings if f.file == str(path) and f.kind in ("graph-break", "compile-error")
        ]

    def compiled(self, path: Path) -> bool:
        return any(c.file == str(path) and c.outcome is CompileOutcome.COMPILED for c in self.report.compiles)


def session(folder: Path, name: str, paths: list[Path]) -> Session:
    """One run over files, in its own driver; no rule may fail in it."""
    driver = folder / f"{name}_driver.py"
    driver.write_text(DRIVER, encoding="utf-8")
    out = folder / f"{name}.json"
    ran: Ran = run_forked(driver, folder / f"{name}.db", "fast", [str(out), *map(str, paths)])
    assert out.exists(), ran.stderr[-3000:]
    data: dict[str, Any] = json.loads(out.read_text())
    assert data["failures"] == []
    options = {key: [from_json(Option, item) for item in items] for key, items in data["options"].items()}
    return Session(ran.report, options, data["results"])
