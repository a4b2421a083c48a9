"""The traces of a job of many ranks: what it costs to open them.

    .venv/bin/python benchmarks/many_ranks.py [--ranks 1024] [--diverges 777] [--rank-logs LOG LOG]

The logs of two ranks are repeated, rank by rank; without --rank-logs both are a small recorded trace.  In one of the ranks an
operation of a graph is another.  Printed are seconds on the clock and of the processor, the most memory that was resident in
one process, and whether the divergence was found, on that rank alone.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

from big_trace import IRSCOPE, TRACE


def written(folder: Path, logs: list[bytes], ranks: int, diverges: int) -> int:
    """Writes the logs of all ranks, each with its number and another process; returns their bytes."""
    size = 0
    for rank in range(ranks):
        text = logs[rank % len(logs)].replace(b'"rank": ', b'"rank": %d, "old_rank": ' % rank)
        if rank == diverges:
            text = diverging(text)
        size += (folder / f"dedicated_log_torch_trace_rank_{rank}_{rank:08x}.log").write_bytes(text)
    return size


def diverging(log: bytes) -> bytes:
    """With another operation in each captured graph, and the checksums that go with it."""
    records = re.split(rb"(?m)^(?=V)", log)
    return b"".join(_changed(record) if b'"dynamo_output_graph"' in record[:400] else record for record in records)


def _changed(record: bytes) -> bytes:
    head, _, payload = record.partition(b"\n")
    changed = re.sub(rb"\.(sin|cos|relu)\(\)", b".tanh()", payload)
    plain = b"\n".join(line[1:] for line in changed.rstrip(b"\n").split(b"\n"))
    told = hashlib.md5(plain, usedforsecurity=False).hexdigest().encode()
    return re.sub(rb'"has_payload": "\w+"', b'"has_payload": "%s"' % told, head) + b"\n" + changed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--diverges", type=int, default=777)
    parser.add_argument("--rank-logs", nargs=2, type=Path)
    options = parser.parse_args()
    logs = [path.read_bytes() for path in options.rank_logs or ()] or [gzip.decompress(TRACE.read_bytes())]
    print(f"load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        traces = Path(folder, "traces")
        traces.mkdir()
        size = written(traces, logs, options.ranks, options.diverges)
        command = [IRSCOPE, "open", str(traces), "--json", "--store", str(Path(folder, "runs.db"))]
        timed = ["/usr/bin/time", "-f", "%e s, %U + %S s of processor, %M kB resident"]
        done = subprocess.run([*timed, *command], capture_output=True, text=True, check=False)
        print(f"{options.ranks} ranks, {size >> 20} MB: {done.stderr.strip()}")
        report = json.loads(done.stdout)
    for one in report["findings"]:
        if one["kind"] == "rank-divergence":
            print(one["code"], "on ranks", one["ranks"], "at line", one["range"]["start"]["line"], "-", one["message"])
    print("opened:", [(one["rank"], len(one["alike"])) for one in report["ranks"]], "of", report["world"])


if __name__ == "__main__":
    main()
