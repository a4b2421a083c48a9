"""How long `irscope open` takes for a profile of hundreds of megabytes, and how much memory.

    .venv/bin/python benchmarks/big_profile.py [MEGABYTES] [RECORDING] [--gz]

Makes a trace of so many megabytes (500): the steps of a recording of `tests/plain/profiles` (``training``) again and again, each
with its own times and ids, and written as Kineto writes them: each event on several lines, with all the arguments that
Kineto gives, and with the arrows between launches and kernels. Then opens it in a process of its own, without a run and with the
recording's. The goals are 10 s and 1 GB for 500 MB. The load of the machine is printed, too.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

RECORDINGS = Path(__file__).resolve().parent.parent / "tests" / "plain" / "profiles"
_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")


def made(events: list[dict[str, Any]], size: int, out: IO[str]) -> int:
    """Writes a trace of at least ``size`` characters; returns how many events it has."""
    first = min(one["ts"] for one in events)
    length = max(one["ts"] + one.get("dur", 0) for one in events) - first + 100.0
    out.write('{\n  "schemaVersion": 1,\n  "deviceProperties": [\n  ],\n  "traceEvents": [\n')
    written = number = 0
    while written < size:
        for text in _copy(events, number, number * length):
            written += out.write(text if written == 0 else ",\n" + text)
        number += 1
    out.write("\n  ]\n}\n")
    return number * len(events)


def _copy(events: list[dict[str, Any]], number: int, later: float) -> Iterator[str]:
    for at, one in enumerate(events):
        args = dict(one.get("args", {}))
        for key in ("External id", "correlation", "Sequence number"):
            if key in args:
                args[key] += number * 1_000_000
        if one.get("cat") in ("cpu_op", "user_annotation"):
            args |= {"Record function id": 0, "Ev Idx": number * len(events) + at}
        elif one.get("cat") in _DEVICE:
            args = {"queued": 0, "device": 0, "context": 1, "registers per thread": 32, "shared memory": 1024,
                    "blocks per SM": 7.757576, "warps per SM": 62.060608, "grid": [1024, 1, 1], "block": [256, 1, 1],
                    "est. achieved occupancy %": 100} | args  # fmt: skip
        name = one["name"]
        if name.startswith(("ProfilerStep#", "irscope::step")):
            name = f"ProfilerStep#{number}"
        head = json.dumps({"ph": one["ph"], "cat": one["cat"], "name": name, "pid": one["pid"], "tid": one["tid"]})[
            1:-1
        ]
        yield (
            f'  {{\n    {head},\n    "ts": {one["ts"] + later:.3f}, "dur": {one.get("dur", 0):.3f},\n'
            f'    "args": {{\n      {json.dumps(args)[1:-1]}\n    }}\n  }}'
        )
        if "correlation" in args:
            phase = "f" if one.get("cat") in _DEVICE else "s"
            yield (
                f'  {{\n    "ph": "{phase}", "id": {args["correlation"]}, "pid": {json.dumps(one["pid"])}, "tid": {json.dumps(one["tid"])}, '
                f'"ts": {one["ts"] + later:.3f},\n    "cat": "ac2g", "name": "ac2g"{", " + chr(34) + "bp" + chr(34) + ": " + chr(34) + "e" + chr(34) if phase == "f" else ""}\n  }}'
            )


def _opened(path: Path, *more: str) -> tuple[float, float, dict[str, Any]]:
    """Seconds, megabytes, and what was told."""
    before = time.perf_counter()
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen([sys.executable, "-m", "irscope", "open", str(path), "--json", *more], stdout=out)
        most = 0.0
        while process.poll() is None:
            most = max(most, _resident(process.pid))
            time.sleep(0.1)
        seconds, status = time.perf_counter() - before, process.returncode
        out.seek(0)
        found = json.loads(out.read() or "{}")
    if status:
        raise SystemExit(f"irscope open failed: {status}")
    return seconds, most, found


def _resident(pid: int) -> float:
    """Megabytes of a process and its children; what they share counts once."""
    total = 0.0
    for each in [str(pid), *_children(pid)]:
        try:
            text = Path(f"/proc/{each}/smaps_rollup").read_text()
        except OSError:
            continue
        total += next((int(line.split()[1]) / 1024 for line in text.split("\n") if line.startswith("Pss:")), 0.0)
    return total


def _children(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


def main() -> None:
    """Makes a trace, and opens it twice."""
    words = [word for word in sys.argv[1:] if word != "--gz"]
    size = int(words[0]) if words else 500
    name = words[1] if len(words) > 1 else "training"
    with gzip.open(RECORDINGS / f"{name}.json.gz", "rt") as file:
        events = [one for one in json.load(file)["traceEvents"] if one.get("ph") == "X"]
    with tempfile.TemporaryDirectory() as folder:
        path, store = Path(folder) / "trace.json", Path(folder) / "runs.db"
        store.write_bytes(gzip.decompress((RECORDINGS / f"{name}.db.gz").read_bytes()))
        with path.open("w") as out:
            count = made(events, size * 1_000_000, out)
        if "--gz" in sys.argv:
            packed = path.with_suffix(".json.gz")
            subprocess.run(["gzip", "-1", str(path)], check=True)
            path = packed
        print(f"{path.stat().st_size / 1e6:.0f} MB, {count} events; load {os.getloadavg()[0]:.1f}")
        start = resource.getrusage(resource.RUSAGE_CHILDREN)
        for title, more in (("without a run", ()), ("with its run", ("--run", "", "--store", str(store)))):
            seconds, megabytes, found = _opened(path, *more)
            end = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime
            start = end
            print(
                f"{title:14} {seconds:6.1f} s, {cpu:6.1f} s of CPU, {megabytes:6.0f} MB, {found['steps']} steps, "
                f"owned {found['owned_seconds'] / found['step_seconds']:.3f}; load {os.getloadavg()[0]:.1f}"
            )


if __name__ == "__main__":
    main()
