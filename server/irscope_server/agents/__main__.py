"""The process that ``irscope mcp`` becomes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from irscope.store.store import default_path
from irscope.system.streams import carry_out
from irscope.vocabulary.agent_options import add_to


def main(argv: Sequence[str] | None = None) -> int:
    """Serves until standard input ends; returns the exit code."""
    parser = argparse.ArgumentParser(prog="irscope mcp")
    add_to(parser, default_path())
    options = parser.parse_args(argv)
    return carry_out("irscope mcp", lambda: _serve(options))


def _serve(options: argparse.Namespace) -> int:
    from irscope_server.agents.commands import Commands  # here: --help needs none of this
    from irscope_server.agents.serve import server_of
    from irscope_server.agents.tools import Tools

    server_of(Tools(Commands(options.store, options.python, options.allow_run))).run("stdio")
    return 0


if __name__ == "__main__":
    sys.exit(main())
