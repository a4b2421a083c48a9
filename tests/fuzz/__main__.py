"""``python tests/fuzz lsp --seconds 600``: sends one of the programs what no well-behaved sender sends.

The same seed sends the same messages, as far as the answers and the clock are the same.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import time
from pathlib import Path
from random import Random

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(HERE.parent / each) for each in (".", "protocol", "protocol/lsp", "protocol/dap"))]

TARGETS = ("lsp", "dap", "mcp", "pipe", "store", "trace")


def main() -> int:
    """The exit code is 1 where something gave way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=float, default=600.0, help="of processor time; default: %(default)g")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    options = parser.parse_args()
    from judge import FuzzError

    folder = Path(tempfile.mkdtemp(prefix=f"irscope-fuzz-{options.target}-"))
    print(f"{options.target}: seed {options.seed}, in {folder}", flush=True)
    begun = time.monotonic()
    try:
        count = importlib.import_module(f"fuzz_{options.target}").fuzz(options.seconds, Random(options.seed), folder)
    except FuzzError as error:
        print(f"{options.target}: seed {options.seed}: {error}")
        return 1
    print(f"{options.target}: {count} in {time.monotonic() - begun:.0f} s, and nothing gave way")
    return 0


if __name__ == "__main__":
    sys.exit(main())
