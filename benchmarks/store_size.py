"""How much a deep run adds to the run store, against the compressed `TORCH_TRACE` log of the same run.

    .venv/bin/python benchmarks/store_size.py [MODEL…]

The models are those of `deep_models.py`.  Each is run once with both: `irscope run` into its own store, which is
empty before, and TORCH_TRACE set to a folder.  The log's files are compressed with gzip as it comes; the store is its
file as it is after the run, tables and indices included.  Nothing here depends on how fast the machine is.
The goal is at most 2.
"""

from __future__ import annotations

import argparse
import gzip
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import deep_models

GOAL = 2.0


def measure(name: str, script: Path, folder: Path) -> float:
    """Prints the figures of a model; returns the ratio.  Raises CalledProcessError where the run fails."""
    trace, store = folder / f"{name}-trace", folder / f"{name}.db"
    env = {key: value for key, value in os.environ.items() if not key.startswith(("TORCH", "IRSCOPE"))}
    env.update(TORCHINDUCTOR_CACHE_DIR=str(folder / f"{name}-cache"), TORCH_TRACE=str(trace), IRSCOPE_STORE=str(store))
    command = [str(Path(sys.executable).parent / "irscope"), "run", str(script)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert "\ncompleted: The script ran to its end.\n" in done.stdout, done.stdout
    logs = [path.read_bytes() for path in trace.iterdir()]
    compressed = sum(len(gzip.compress(log)) for log in logs)
    assert not Path(f"{store}-wal").exists(), "the store is still open"
    size = store.stat().st_size
    print(
        f"{name}: log {sum(map(len, logs)) / 1e3:.0f} kB, compressed {compressed / 1e3:.0f} kB, "
        f"store {size / 1e3:.0f} kB, ratio {size / compressed:.2f} (goal ≤ {GOAL:g})",
        flush=True,
    )
    return size / compressed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(deep_models.SCRIPTS), metavar="MODEL")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scripts = deep_models.write(folder, options.models)
        ratios = [measure(model, path, folder) for model, path in scripts.items()]
    print(f"largest ratio {max(ratios):.2f}")
    return 0 if max(ratios) <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
