"""Whether `irscope diff --python OLD --python NEW` names the right cause of changes between versions of PyTorch.

    python benchmarks/version_changes.py 2.11=old/bin/python 2.13=new/bin/python [NAME…] [--seconds N] [--out RESULTS.json]
    python benchmarks/version_changes.py --read RESULTS.json

Each script of `version_set` says in its first lines what changed between which versions, as it was found by reading
PyTorch's sources and trying by hand::

    # change: 2.11 2.13 torch._dynamo.variables.tensor.TensorVariable.method_requires_grad_

A change is named if a confirmed cause has that name, alone or together with others; the name ``?`` stands for any.  With ``none`` as name the script has
no difference in two environments with one version.  Fork servers and what the environments have are shared by the scripts.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "compiler")]

from irscope.cli.text import Paint  # noqa: E402
from irscope.cli.versioning import cause_words, version_lines  # noqa: E402
from irscope.driver.driver import RunSpec  # noqa: E402
from irscope.driver.versions import Plan, compared_versions, facts_of  # noqa: E402
from irscope.store.store import Store  # noqa: E402
from irscope.worker.client import Worker  # noqa: E402

SCRIPTS = HERE / "version_set"
CHANGE = re.compile(r"^# change: (\S+) (\S+) (\S+)$", re.MULTILINE)


def main() -> None:
    parser = argparse.ArgumentParser(description="Causes of changes between versions of PyTorch.")
    parser.add_argument("words", nargs="*", help="VERSION=INTERPRETER, and names of scripts; without any, all")
    parser.add_argument("--seconds", type=float, default=600, help="for the search of one script")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--read", type=Path, help="print results that were written")
    options = parser.parse_args()
    if options.read:
        report(json.loads(options.read.read_text()))
        return
    pythons = dict(word.split("=", 1) for word in options.words if "=" in word)
    names = [word for word in options.words if "=" not in word]
    environments = Environments(pythons)
    results: list[dict[str, Any]] = []
    try:
        for path in sorted(SCRIPTS.glob("*.py")):
            if names and path.stem not in names:
                continue
            for old, new, name in CHANGE.findall(path.read_text(encoding="utf-8")):
                if old in pythons and new in pythons:
                    results.append(compared(path, old, new, name, environments, options.seconds))
                    if options.out:
                        options.out.write_text(json.dumps(results, indent=1))
    finally:
        environments.stop()
    report(results)


class Environments:
    """The interpreters by version, with what each has and a fork server, made when they are first needed."""

    def __init__(self, pythons: dict[str, str]) -> None:
        self.pythons = pythons
        self._facts: dict[str, Any] = {}
        self._workers: dict[str, Worker] = {}

    def facts(self, version: str) -> Any:
        if version not in self._facts:
            self._facts[version] = facts_of(self.pythons[version])
        return self._facts[version]

    def worker(self, version: str) -> Worker:
        if version not in self._workers:
            self._workers[version] = Worker(self.pythons[version])
            self._workers[version].wait_until_ready(600)
        return self._workers[version]

    def stop(self) -> None:
        for worker in self._workers.values():
            worker.stop()


def compared(path: Path, old: str, new: str, name: str, environments: Environments, seconds: float) -> dict[str, Any]:
    before, after = (
        RunSpec(script=str(path), python=environments.pythons[version], symbolic_trace=False) for version in (old, new)
    )
    facts = environments.facts(old), environments.facts(new)
    plan = Plan(before, after, seconds, facts, (environments.worker(old), environments.worker(new)))
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, Store(str(Path(folder, "runs.db"))) as store:
        found = compared_versions(plan, store, on_step=lambda text: print(f"  {text}", file=sys.stderr, flush=True))
    text = version_lines(found, Paint(sys.stdout))
    print("\n".join(("", f"== {path.stem} {old} {new}", *text)), flush=True)
    confirmed = [cause for cause in found.causes if cause.confirmed]
    causes = {change.name for cause in confirmed for change in cause.changes}
    return {
        "script": path.stem, "old": facts[0].torch, "new": facts[1].torch, "expected": name,
        "named": not found.differences if name == "none" else bool(causes) if name == "?" else name in causes,
        "alone": any(len(cause.changes) == 1 and name in ("?", cause.changes[0].name) for cause in found.causes),
        "causes": [cause_words(cause) for cause in confirmed],
        "unexplained": [f"{one.kind}: {one.what}" for one in found.unexplained],
        "differences": len(found.differences), "trials": found.trials, "seconds": time.monotonic() - began,
    }  # fmt: skip


def report(results: list[dict[str, Any]]) -> None:
    for one in results:
        verdict = "named" if one["named"] else "not named"
        print(f"{verdict:9}  {one['script']:20} {one['old']} → {one['new']}  {one['expected']}")
        print(
            f"           causes: {'; '.join(one['causes']) or 'none'}; {one['trials']} more runs, {one['seconds']:.0f} s"
        )
    named = sum(one["named"] for one in results)
    print(f"{named} of {len(results)} named, {sum(one['alone'] for one in results)} of them alone")


if __name__ == "__main__":
    main()
