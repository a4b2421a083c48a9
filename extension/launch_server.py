"""Starts the language server with `python -I -S launch_server.py`, out of this folder alone; with `--dap` the debug adapter.
With `--mcp ARGS…`, and without these flags, the server for agents: its library has parts that only an interpreter's own packages can hold.

-S keeps the interpreter's site-packages off the path and -I keeps PYTHONPATH and the working folder off it, so whatever
the user has installed, in whatever version, the server gets the libraries it was tested with.

In a packed extension everything lies in `bundled/`; in a checkout the packages are taken from their source folders.
"""

# No newer syntax above the version check: an old interpreter must get as far as the message.
import os
import sys

OLDEST = (3, 10)


def main():
    if sys.version_info < OLDEST:
        found = "%d.%d" % tuple(sys.version_info[:2])  # noqa: UP031 - must be readable by any Python 3.
        sys.stderr.write("irscope needs Python 3.10 or newer; %s is %s.\n" % (sys.executable, found))  # noqa: UP031
        return 3
    here = os.path.dirname(os.path.abspath(__file__))
    checkout = os.path.dirname(here)
    bundled = os.path.join(here, "bundled")
    in_checkout = os.path.isfile(os.path.join(checkout, "compiler", "irscope", "__init__.py"))
    packages = checkout if in_checkout else bundled
    if sys.argv[1:2] == ["--mcp"]:
        sys.path[:1] = [os.path.join(packages, "server"), os.path.join(packages, "compiler")]
        from irscope.cli import main as command

        return command(["mcp"] + sys.argv[2:])  # noqa: RUF005 - must be readable by any Python 3.
    sys.path[:0] = [
        os.path.join(packages, "server"),
        os.path.join(packages, "compiler"),
        os.path.join(bundled, "libs"),
    ]
    if not os.path.isdir(os.path.join(bundled, "libs", "pygls")):
        sys.stderr.write("irscope's libraries are missing in %s; run `npm run build`.\n" % bundled)  # noqa: UP031
        return 3
    if sys.argv[1:] == ["--dap"]:
        from irscope_server.dap.__main__ import main as debug

        return debug([])
    from irscope_server.__main__ import main as serve

    return serve()


if __name__ == "__main__":
    sys.exit(main())
