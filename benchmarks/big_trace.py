"""A big structured trace: what indexing it costs, beside tlparse, and how long a query takes.

    .venv/bin/python benchmarks/big_trace.py [--megabytes 1024] [--tlparse PATH] [--tlparse-megabytes 20]

The trace is a recorded one, repeated with other frame IDs.  Printed are seconds on the clock and of the processor from
start to first answer (`irscope open --overview`), the most memory that was resident, and the time of a second overview;
with --tlparse also tlparse's throughput on a smaller trace of the same records, and the ratio.  The goals: at least
three times the throughput, at most 500 MB, at most 0.3 s.  On a machine with other work only processor times mean
something.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TRACE = Path(__file__).parents[1] / "tests" / "plain" / "traces" / "trace.log.gz"
IRSCOPE = str(Path(sys.executable).parent / "irscope")


def written(path: Path, megabytes: int) -> int:
    """Writes the trace; returns its bytes."""
    source = gzip.decompress(TRACE.read_bytes()).rstrip(b"\n") + b"\n"
    size, number = 0, 0
    with path.open("wb") as file:
        while size < megabytes << 20:
            size, number = size + file.write(_shifted(source, number * 1000)), number + 1
    return size


def _shifted(text: bytes, by: int) -> bytes:
    return re.sub(rb'"frame_id": (\d+)', lambda found: b'"frame_id": %d' % (int(found[1]) + by), text)


def cost_of(command: list[str]) -> tuple[float, float, int]:
    """Seconds on the clock and of the processor, and megabytes that were resident at most."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed with status {status}")
    return time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss // 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--tlparse")
    parser.add_argument("--tlparse-megabytes", type=int, default=20)
    options = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}, {resource.getpagesize()} bytes a page")
    with tempfile.TemporaryDirectory() as folder:
        log, store = Path(folder, "trace.log"), str(Path(folder, "runs.db"))
        size = written(log, options.megabytes)
        command = [IRSCOPE, "open", str(log), "--overview", "--store", store]
        wall, cpu, memory = cost_of(command)
        print(f"first overview of {size >> 20} MB: {wall:.1f} s, {cpu:.1f} s of processor, {memory} MB resident")
        wall, cpu_again, _ = cost_of(command)
        print(f"second overview: {wall:.2f} s, {cpu_again:.2f} s of processor")
        if options.tlparse:
            small = written(log, options.tlparse_megabytes)
            out = str(Path(folder, "out"))
            _, theirs, _ = cost_of([options.tlparse, str(log), "-o", out, "--overwrite", "--no-browser"])
            ratio = (size / cpu) / (small / theirs)
            print(
                f"tlparse, {small >> 20} MB: {theirs:.1f} s of processor; irscope's throughput is {ratio:.0f} times that"
            )


if __name__ == "__main__":
    main()
