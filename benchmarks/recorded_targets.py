"""Kernels predicted for a target, against those that a real device once made of the same programs.

    python benchmarks/recorded_targets.py FOLDER [--target h100] [--jobs 6]

`FOLDER/small_cases.py` has the programs (``CASES``: by name a function of the device that returns what to compile, its
arguments, and whether it is trained), and `FOLDER/small-cases.json` the output code of the real device (``codes``: by name
the forward's and the backward's; ``torch``: the version).  To compare to the byte the versions of torch and triton must be
the same; no GPU is used.  Prints how many kernels are the same, and the names of the others.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from irscope.comparing.certificates import comparable_source
from irscope.store.store import Store

SECONDS = 240
SCRIPT = """\
import sys
sys.path.insert(0, {folder!r})
import torch
from small_cases import CASES
torch.manual_seed(0)
program, inputs, train = CASES[{case!r}]("cpu")
with torch.set_grad_enabled(train):
    result = torch.compile(program)(*inputs)
    if train:
        result.sum().backward()
"""
KERNEL = re.compile(r"async_compile\.triton\('\w+', '''\n?(?P<source>.*?)'''", re.DOTALL)


def recorded(codes: list[str]) -> Counter[str]:
    """The kernels' sources in the device's output code."""
    return Counter(comparable_source(each["source"]) for code in codes for each in KERNEL.finditer(code))


def predicted(case: str, folder: Path, work: Path, target: str) -> Counter[str]:
    """The kernels' sources that irscope predicts.  Raises RuntimeError."""
    script, store = work / f"{case}.py", work / f"{case}.db"
    script.write_text(SCRIPT.format(folder=str(folder.resolve()), case=case), encoding="utf-8")
    command = [sys.executable, "-m", "irscope", "run", str(script), "--store", str(store), "--target", target, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    try:
        run = json.loads(done.stdout)["run"]
    except ValueError as error:
        raise RuntimeError(done.stderr[-500:]) from error
    with Store(str(store)) as opened:
        kernels = [one for one in opened.report(run).predicted_kernels if one.language == "triton" and one.is_generated]
        return Counter(comparable_source(opened.stage_text(run, one.stage)) for one in kernels)


def name_of(source: str) -> str:
    found = re.search(r"def (triton_\w+)", source)
    return found[1] if found else source[:40]


def main() -> int:
    """Compares all programs; returns 1 if a kernel differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="h100")
    parser.add_argument("--jobs", type=int, default=6)
    options = parser.parse_args()
    real = json.loads((options.folder / "small-cases.json").read_text(encoding="utf-8"))
    print(f"recorded with torch {real['torch']}, predicted with {torch.__version__}")
    same = total = 0
    with tempfile.TemporaryDirectory(prefix="irscope-recorded-") as work, ThreadPoolExecutor(options.jobs) as pool:
        futures = {
            case: pool.submit(predicted, case, options.folder, Path(work), options.target) for case in real["codes"]
        }
        for case, codes in real["codes"].items():
            wanted = recorded(codes)
            try:
                have = futures[case].result()
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                print(f"{case:20} {error}")
                have = Counter()
            both = sum((wanted & have).values())
            same, total = same + both, total + sum(wanted.values())
            print(f"{case:20} {both} of {sum(wanted.values())}")
            for title, rest in (("only recorded", wanted - have), ("only predicted", have - wanted)):
                print("".join(f"    {title}: {name_of(source)}\n" for source in rest), end="")
    print(f"{same} of {total} kernels are the same")
    return int(same < total)


if __name__ == "__main__":
    sys.exit(main())
