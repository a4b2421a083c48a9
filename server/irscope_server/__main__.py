"""The command ``irscope-server``: a language server on standard input and output."""

from __future__ import annotations

import gc
import sys
import textwrap

_HELP = """\
usage: irscope-server [--help] [--version]

Language server of irscope: shows what torch.compile did to a Python script.
It speaks the Language Server Protocol on standard input and output; an editor starts it.

  --help     show this help and exit
  --version  show the version and exit
  --stdio    the default; accepted because clients pass it

{settings}
"""


def _help() -> str:
    from irscope.vocabulary.setting import Goes
    from irscope.vocabulary.settings import SETTINGS

    keys = ", ".join(key for key, row in SETTINGS.items() if row.goes is Goes.SERVER)
    settings = (
        f'Settings come from the client (section "irscope"): {keys}. What they mean: docs/settings.md; how to set up an '
        "editor: docs/other-editors.md."
    )
    return _HELP.format(settings=textwrap.fill(settings, 120, break_on_hyphens=False))


def main(argv: list[str] | None = None) -> None:
    """Serves until the client says goodbye or standard input ends; ends the process."""
    arguments = [argument for argument in (sys.argv[1:] if argv is None else argv) if argument != "--stdio"]
    if arguments:
        from irscope.system.streams import carry_out

        sys.exit(carry_out("irscope-server", lambda: _told(arguments)))
    gc.disable()  # while the protocol's 500 classes are made: none is garbage, and collecting takes 0.5 s
    from irscope_server.app.serve import serve_stdio

    gc.freeze()
    gc.enable()
    serve_stdio()


def _told(arguments: list[str]) -> int:
    if "--help" in arguments or "-h" in arguments:
        print(_help(), end="")
        return 0
    if "--version" in arguments:
        from irscope import __version__

        print(f"irscope-server {__version__}")
        return 0
    from irscope.vocabulary.suggestions import did_you_mean

    near = did_you_mean(arguments[0], ("--help", "--version", "--stdio"))
    print(f"irscope-server: unknown argument: {arguments[0]}.{near} See --help.", file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
