"""The command ``irscope-dap``: a debug adapter on standard input and output."""

from __future__ import annotations

import sys

_HELP = """\
usage: irscope-dap [--help] [--version]

Debug adapter of irscope: steps through what torch.compile did to a Python script.
It speaks the Debug Adapter Protocol on standard input and output; an editor starts it.

  --help     show this help and exit
  --version  show the version and exit

launch: program, args, cwd, env, python, stopOn, store, budgetSeconds, noDebug.
attach: run (ID of a stored run, default: the newest), store, stopOn.  See docs/DEBUGGER.md.
"""


def main(argv: list[str] | None = None) -> None:
    """Serves until the client says goodbye or standard input ends; ends the process."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments:
        from irscope.system.streams import carry_out

        sys.exit(carry_out("irscope-dap", lambda: _told(arguments)))
    from irscope_server.dap.protocol.serve import serve_stdio

    serve_stdio()


def _told(arguments: list[str]) -> int:
    if "--help" in arguments or "-h" in arguments:
        print(_HELP, end="")
        return 0
    if "--version" in arguments:
        from irscope import __version__

        print(f"irscope-dap {__version__}")
        return 0
    from irscope.vocabulary.suggestions import did_you_mean

    near = did_you_mean(arguments[0], ("--help", "--version"))
    print(f"irscope-dap: unknown argument: {arguments[0]}.{near} See --help.", file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
