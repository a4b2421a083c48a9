"""Runs commands of irscope that only read, one after the other, in this process: a JSON list of arguments a line.

Answers each with a line on the descriptor that it was given: the exit code, and what was written on standard error.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback

INTERNAL = 70
"""irscope's exit code for an error of its own."""


def serve(answers: int) -> None:
    """Until the end of the input."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        os.dup2(output.fileno(), 1)
        os.dup2(errors.fileno(), 2)
        os.environ["IRSCOPE_DEBUG"] = "1"  # so that an internal error says where it was
        from irscope.cli.main import main

        for line in sys.stdin:
            try:
                code = main(json.loads(line))
            except SystemExit as left:
                code = left.code if isinstance(left.code, int) else 2
            except Exception:  # noqa: BLE001
                code = INTERNAL
                sys.stderr.write(traceback.format_exc()[-1500:])
            sys.stdout.flush()
            sys.stderr.flush()
            errors.seek(0)
            said = errors.read().decode("utf-8", "replace")
            for file in (output, errors):
                file.seek(0)
                file.truncate()
            os.write(answers, (json.dumps({"code": code, "said": said[-5000:]}) + "\n").encode())


if __name__ == "__main__":
    serve(int(sys.argv[1]))
