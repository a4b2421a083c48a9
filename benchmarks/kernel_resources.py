"""Registers, spills, stack and matrix instructions of predicted kernels, against ptxas and cuobjdump run by themselves.

    irscope run benchmarks/kernel_programs.py --target h100 --store STORE -- 0    # also 1, 2, and other scripts
    python benchmarks/kernel_resources.py STORE [RUN …] [--json FILE]

For each kernel of runs with an NVIDIA target: its PTX is taken as text, ``ptxas -v`` compiles it, and ``cuobjdump -sass``
lists the instructions of what it wrote.  What they say is compared with ``irscope show --resources --json``.  Nothing
of irscope's reads their output.  ptxas and cuobjdump are those of the installed triton, or on the PATH.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SASS = {"wgmma": r"\b[HIQ]GMMA", "mma.sync": r"\b[HIDQ]MMA", "": r"(?!)"}
"""How the instructions of PTX for matrices are called in SASS."""


def tool(name: str) -> str:
    """The path of one of Triton's tools."""
    found = importlib.util.find_spec("triton")
    own = Path(found.origin).parent / "backends" / "nvidia" / "bin" / name if found and found.origin else None
    path = str(own) if own and own.exists() else shutil.which(name)
    if path is None:
        sys.exit(f"{name} not found: install triton or put it on the PATH.")
    return path


def irscope(store: str, *words: str) -> Any:
    """What a command prints as JSON."""
    command = [sys.executable, "-m", "irscope", *words, "--json", "--store", store]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def by_ptxas(ptx: str) -> dict[str, Any]:
    """What ptxas and cuobjdump say of a kernel, compiled with the options that Triton gives ptxas."""
    (architecture,) = re.findall(r"^\.target (sm_\w+)", ptx, re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "k.ptx").write_text(ptx)
        command = [tool("ptxas"), "-lineinfo", "-v", f"--gpu-name={architecture}", "k.ptx", "-o", "k.cubin"]
        said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stderr
        dump = [tool("cuobjdump"), "-sass", "k.cubin"]
        sass = subprocess.run(dump, cwd=folder, capture_output=True, text=True, check=True).stdout
    stack, *spilled = map(int, re.findall(r"(\d+) bytes (?:stack frame|spill stores|spill loads)", said))
    (registers,) = map(int, re.findall(r"Used (\d+) registers", said))
    matrix = next((name for name in ("wgmma", "mma.sync") if re.search(SASS[name], sass)), "")
    return {"registers": registers, "stack": stack, "spilled": max(spilled), "matrix": matrix}


def main() -> None:
    """Compares all kernels, and prints those that differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store")
    parser.add_argument("runs", nargs="*")
    parser.add_argument("--json", help="write the result here")
    options = parser.parse_args()
    runs = options.runs or [each["run"] for each in irscope(options.store, "list")]
    compared: dict[str, dict[str, Any]] = {}
    for run in runs:
        stages = [
            stage["id"] for each in irscope(options.store, "show", run)["predictions"] for stage in each["stages"]
        ]
        nvidia = {stage.removesuffix("/ptx") for stage in stages if stage.endswith("/ptx")}
        for each in irscope(options.store, "show", run, "--resources"):
            if each["kernel"] not in nvidia:
                continue
            (stage,) = irscope(options.store, "show", run, "--stage", f"{each['kernel']}/ptx")
            key = stage["text"]
            told = {name: each[name] for name in ("registers", "stack", "spilled")}
            matrix = each["matrix"].split(".")[0] if each["matrix"].startswith("wgmma") else each["matrix"][:8]
            name = os.path.basename(each["kernel"])
            compared[key] = {"name": name, "irscope": {**told, "matrix": matrix}, "ptxas": by_ptxas(key)}
    rows = list(compared.values())
    differ = [row for row in rows if row["irscope"] != row["ptxas"]]
    for row in differ:
        print(json.dumps(row))
    kinds = {kind or "none": sum(row["ptxas"]["matrix"] == kind for row in rows) for kind in SASS}
    spills = sum(row["ptxas"]["spilled"] > 0 for row in rows)
    result = {"kernels": len(rows), "equal": len(rows) - len(differ), "with_spills": spills, "matrix": kinds}
    print(json.dumps(result))
    if options.json:
        Path(options.json).write_text(json.dumps(result, indent=1) + "\n")
    sys.exit(bool(differ))


if __name__ == "__main__":
    main()
