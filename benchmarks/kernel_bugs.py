"""What `irscope kernel` finds: bugs that are planted in Inductor's own Triton kernels, and how many kernels run and agree.

    python benchmarks/kernel_bugs.py                     40 planted bugs, eight of each kind, and the kernels as they are
    python benchmarks/kernel_bugs.py --store runs.db …   the rate of the predicted kernels of stored runs alone

The kernels are those of eight small programs for an H100; no GPU is needed, triton is.  A bug counts as found if a check names
a statement that the bug is in, or that uses what it changed, and a line of the program; *by the result* if only the
comparison with eager mode shows it.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from irscope.store.store import Store
from irscope.values.kernel.asking import StoredKernel
from irscope.values.kernel.running import run_kernels

PROGRAM = """\
import torch

torch.manual_seed(0)


@torch.compile
def norm(x, w):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w


@torch.compile
def soft(x):
    return torch.softmax(x * 2, -1)


@torch.compile
def wave(x, y):
    return torch.sin(x) * y + x.abs().sqrt()


@torch.compile
def mean(x):
    return (x - x.mean(0)) / (x.std(0) + 1)


@torch.compile
def layer(x, w, b):
    return torch.nn.functional.layer_norm(x, (x.shape[-1],), w, b)


@torch.compile
def cosine(x, y):
    return torch.nn.functional.cosine_similarity(x, y, -1)


@torch.compile
def gate(x):
    a, b = x.chunk(2, -1)
    return torch.nn.functional.silu(a) * b


@torch.compile
def loss(x, t):
    return ((x - t) ** 2).sum(-1)


with torch.no_grad():
    norm(torch.randn(37, 200), torch.randn(200))
    soft(torch.randn(45, 300))
    wave(torch.randn(33, 70), torch.randn(33, 1))
    mean(torch.randn(300, 23))
    gate(torch.randn(21, 2 * 90))
    layer(torch.randn(41, 100), torch.randn(100), torch.randn(100))
    cosine(torch.randn(50, 120), torch.randn(50, 120))
    loss(torch.randn(70, 150), torch.randn(70, 150))
"""
EACH = 8
Bug = tuple[str, int, str]  # the text with the bug, its line, and the kinds of problems that show it


def main() -> int:
    """Prints JSON; 1 if a bug was not found or a kernel as Inductor made it has a finding."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", nargs="+", type=Path, default=[])
    parser.add_argument("--seconds", type=float, default=20.0, help="for the programs of one kernel")
    parser.add_argument("--unseen", nargs="+", type=Path, default=[], help="stores whose kernels get other bugs, two of each kind")  # fmt: skip
    options = parser.parse_args()
    if options.unseen:
        kernels = [kernel for path in options.unseen for kernel in kernels_of(path)]
        print(json.dumps(planted(kernels, options.seconds, UNSEEN, 2), indent=1))
        return 0
    if options.store:
        print(
            json.dumps(
                rate([kernel for path in options.store for kernel in kernels_of(path)], options.seconds), indent=1
            )
        )
        return 0
    with tempfile.TemporaryDirectory() as folder:
        script, store = Path(folder, "small.py"), Path(folder, "runs.db")
        script.write_text(PROGRAM)
        command: list[str | Path] = [
            sys.executable,
            "-m",
            "irscope",
            "run",
            "--target",
            "h100",
            "--no-machine-code",
            "--store",
            store,
            script,
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        kernels = kernels_of(store)
        as_made = rate(kernels, options.seconds)
        found = planted(kernels, options.seconds)
    print(json.dumps({"as Inductor made them": as_made, "planted": found}, indent=1))
    missed = sum(kind["planted"] - kind["found"] for kind in found.values())
    return int(missed > 0 or as_made["findings"] > 0)


def kernels_of(path: Path) -> list[StoredKernel]:
    """The predicted Triton kernels of the newest run of a store."""
    store = Store(str(path))
    report = store.report(store.find_run(None))
    every = [*report.kernels, *report.predicted_kernels]
    return [StoredKernel(store, report, each.stage) for each in every if each.language == "triton"]


def rate(kernels: list[StoredKernel], seconds: float) -> dict[str, Any]:
    """How many kernels run and agree, and why the others do not."""
    answers = run_kernels(sys.executable, [{**each.request(), "seconds": seconds} for each in kernels], 3600)
    others: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for kernel, answer in zip(kernels, answers, strict=True):
        what, why = verdict(answer)
        counts[what] += 1
        counts["findings"] += len(answer.get("problems", ()))
        if what != "agree":
            others[kernel.stage] = f"{what}: {why}"
    return {"kernels": len(kernels), "agree": counts["agree"], "findings": counts["findings"], "others": others}


def verdict(answer: dict[str, Any]) -> tuple[str, str]:
    """Whether a kernel ran and agrees, and why not."""
    if why := answer.get("error") or answer.get("failed"):
        return "did not run", str(why)
    outputs = answer["outputs"]
    if wrong := [each["parameter"] for each in outputs if each["measure"] and each["measure"]["differs"]]:
        return "differs", ", ".join(wrong)
    if missing := [f"{each['parameter']}: {each['why']}" for each in outputs if each["measure"] is None]:
        return "not compared", "; ".join(missing)
    return ("agree", "") if outputs else ("not compared", "it wrote nothing")


def planted(kernels: list[StoredKernel], seconds: float, kinds: dict[str, Any] | None = None, many: int = EACH) -> dict[str, Any]:  # fmt: skip
    """Plants bugs of each kind, drawn with a fixed seed, and runs the kernels."""
    drawn, chosen = random.Random(0), list[tuple[str, StoredKernel, Bug]]()
    kinds = kinds or KINDS
    for name, make in kinds.items():
        every = [(name, kernel, bug) for kernel in kernels for bug in make(kernel.text)]
        chosen += drawn.sample(every, min(many, len(every)))
    requests = [{**kernel.request(), "text": bug[0], "seconds": seconds} for _, kernel, bug in chosen]
    found = {name: {"planted": 0, "found": 0, "by the result": 0, "missed": list[str]()} for name in kinds}
    for (name, kernel, bug), answer in zip(chosen, run_kernels(sys.executable, requests, 3600), strict=True):
        row: dict[str, Any] = found[name]
        row["planted"] += 1
        lines = lines_of(bug)
        hits = [each for each in answer.get("problems", ()) if each["kind"] in bug[2].split() and each["line"] in lines]
        if any(kernel.place(each["line"]) for each in hits):
            row["found"] += 1
        elif "outputs" in answer and verdict(answer)[0] == "differs":
            row["by the result"] += 1
        else:
            row["missed"].append(f"{kernel.kernel.name}:{bug[1]} {verdict(answer)} {answer.get('problems')}")
    return found


def lines_of(bug: Bug) -> set[int]:
    """The lines at which a bug shows: its own, and those that use a name which it assigns, step by step."""
    rows = bug[0].split("\n")
    names, lines = {rows[bug[1] - 1].partition(" = ")[0].strip()}, {bug[1]}
    for number, row in enumerate(rows, 1):
        if number > bug[1] and any(re.search(rf"\b{re.escape(name)}\b", row) for name in names if name.isidentifier()):
            lines.add(number)
            if " = " in row:
                names.add(row.partition(" = ")[0].strip())
    return lines


def _each(text: str, pattern: str, change: Any, kinds: str) -> list[Bug]:
    rows, bugs = text.split("\n"), list[Bug]()
    for number, row in enumerate(rows, 1):
        for match in re.finditer(pattern, row):
            changed = change(row, match)
            if changed and changed != row:
                bugs.append(("\n".join([*rows[: number - 1], changed, *rows[number:]]), number, kinds))
    return bugs


def mask_too_wide(text: str) -> list[Bug]:
    """``xindex < xnumel`` becomes ``xindex < xnumel + 7``."""
    pattern = r"^(\s*\w*mask = \w+ < \w+numel)$"
    return _each(text, pattern, lambda row, _: f"{row} + 7", "out-of-bounds-read out-of-bounds-write")


def wrong_stride(text: str) -> list[Bug]:
    """The stride of an access is one too large."""

    def change(row: str, match: re.Match[str]) -> str:
        return (
            f"{row[: match.start(1)]}{int(match[1]) + 1}{row[match.end(1) :]}"
            if "tl.load" in row or "tl.store" in row
            else ""
        )

    return _each(text, r"(\d+)\*[xyr]\d", change, "out-of-bounds-read out-of-bounds-write race never-written")


def lost_other(text: str) -> list[Bug]:
    """A load has no ``other=``, and what is masked out goes into a reduction."""
    rows, bugs = text.split("\n"), list[Bug]()
    for number, row in enumerate(rows, 1):
        if "tl.load" not in row or ", other=0.0" not in row or "r0_mask" not in row:
            continue
        changed, guards = list(rows), 0
        changed[number - 1] = row.replace(", other=0.0", "")
        for at in sorted(lines_of((text, number, ""))):  # the guards behind it
            changed[at - 1], one = re.subn(r"= tl\.where\(r0_mask[^,]*, (\w+), [^)]*\)+$", r"= \1", changed[at - 1])
            guards += one
        if guards:
            bugs.append(("\n".join(changed), number, "non-finite"))
    return bugs


def race(text: str) -> list[Bug]:
    """Two programs, or two lanes, write one element."""
    return _each(text, r"tl\.store\(\w+ \+ \((.+?)\), ", lambda row, match: f"{row[: match.start(1)]}({match[1]}) // 2{row[match.end(1) :]}", "race left-unwritten")  # fmt: skip


def overflow(text: str) -> list[Bug]:
    """What is summed is too large for float32."""
    pattern = r"= tl\.sum\((\w+), "
    return _each(text, pattern, lambda row, match: f"{row[: match.start(1)]}{match[1]} * 1e30 * 1e30{row[match.end(1) :]}", "non-finite")  # fmt: skip


KINDS = {"mask too wide": mask_too_wide, "wrong stride": wrong_stride, "lost other=": lost_other, "race": race, "overflow": overflow}  # fmt: skip

UNSEEN = {
    "a store one too far": lambda text: _each(text, r"tl\.store\(\w+ \+ \((.+?)\), ", lambda row, match: f"{row[: match.end(1)]} + 1{row[match.end(1) :]}", "out-of-bounds-write race left-unwritten"),
    "a wrong modulus": lambda text: _each(text, r" % (\d+)\)", lambda row, match: f"{row[: match.start(1)]}{int(match[1]) + 3}{row[match.end(1) :]}", "out-of-bounds-read out-of-bounds-write race left-unwritten never-written"),
    "a root of a negative number": lambda text: _each(text, r"(?:rsqrt|sqrt)\((tmp\d+)\)", lambda row, match: f"{row[: match.start(1)]}-1 - {match[1]}{row[match.end(1) :]}", "non-finite"),
    "a lost offset": lambda text: _each(text, r"xoffset = tl\.program_id\(0\) \* XBLOCK$", lambda row, match: row.replace("tl.program_id(0)", "0 * tl.program_id(0)"), "race"),
}  # fmt: skip
"""Kinds for which the checks were not tuned: two of each are drawn from the kernels of ``--unseen`` stores."""

if __name__ == "__main__":
    sys.exit(main())
