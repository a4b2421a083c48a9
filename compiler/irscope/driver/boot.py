"""The first file of a run's process: ``python boot.py REQUEST_FD MESSAGE_FD STATUS_FD``, of a worker: ``boot.py worker FD``, of a
value process: ``boot.py values``, of one that runs a kernel: ``boot.py kernel REQUEST ANSWER``, of one that prints facts of its
environment: ``boot.py facts``, of one that loads the guards of an artifact which the user trusts: ``boot.py guards``, or of one
that times a start: ``boot.py start``.

It loads the irscope package from where this file lies, without touching ``sys.path``, so that the script sees the
modules that it would see without irscope.  It is written for old Pythons too, to tell them what is missing.
"""

import sys

AT_START = frozenset(sys.modules)

import os  # noqa: E402

# In the folders before the standard library, those of PYTHONPATH, files may have the names of its modules.
PATH, _standard = sys.path[:], os.path.dirname(os.__file__)
LATER_PATH = PATH[PATH.index(_standard) :] if _standard in PATH else PATH
sys.path[:] = LATER_PATH

import gc  # noqa: E402
import importlib.util  # noqa: E402
import json  # noqa: E402


def boot():
    """Do what the arguments of the process ask for: run a script, be a worker, answer about values, or print facts."""
    if sys.argv[1] == "worker":
        load_package()
        from irscope.worker.server import main

        sys.path[:] = PATH
        main(int(sys.argv[2]))
        return
    if sys.argv[1] == "values":
        load_package()
        from irscope.values.run.process import main as answer

        sys.path[:] = PATH
        answer()
        return
    if sys.argv[1] == "kernel":
        load_package()
        from irscope.values.kernel.process import main as run_kernel

        sys.path[:] = PATH
        run_kernel()
        return
    if sys.argv[1] == "facts":
        load_package()
        from irscope.internals.environment_facts import main as print_facts

        sys.path[:] = PATH
        print_facts()
        return
    if sys.argv[1] == "guards":
        load_package()
        from irscope.internals.saved_guards import main as judge
        from irscope.ir.guard_text import parse_failed_guard

        sys.path[:] = PATH
        judge(lambda reason: parse_failed_guard(reason).source)
        return
    if sys.argv[1] == "start":
        load_package()
        from irscope.internals.start_times import main as start

        sys.path[:] = PATH
        start()
        return
    request_fd, message_fd, status_fd = (int(argument) for argument in sys.argv[1:4])
    with os.fdopen(request_fd, "rb") as pipe:
        request = json.loads(pipe.read().decode("utf-8"))
    for fd in (message_fd, status_fd):
        os.set_inheritable(fd, False)
    if sys.version_info < (3, 10):
        reason = (
            "Python %d.%d is too old: irscope needs Python 3.10 or newer. Choose another interpreter."
            % sys.version_info[:2]
        )
        os.write(message_fd, frame(json.dumps({"is": "Refused", "reason": reason}).encode() + b"\n"))
        return

    gc.disable()  # no import here becomes garbage; `run` sets it back when the script begins
    folder = os.path.dirname(os.path.realpath(request["script"])) if os.path.isabs(request["script"]) else os.getcwd()
    import_main(folder, AT_START).begin(request, message_fd, status_fd)


def import_main(folder, at_start):
    """The module that begins runs, which sees the standard library whatever the files in a folder are called."""
    load_package()
    from irscope.runner.hidden_modules import shield_from

    sys.path[:] = PATH
    package = shield_from(folder, at_start)
    sys.path[:] = LATER_PATH
    main = importlib.import_module(package + ".runner.main")
    sys.path[:] = PATH
    return main


def follow(address, at_start):
    """In an interpreter that a script has started (`in_children/sitecustomize.py`): capture, for the driver at an address."""
    import_main(PATH[0] if PATH else "", at_start).follow(address)


def frame(payload):
    """As the first of `irscope.protocol.frames`, which an old Python cannot load."""
    import struct
    import zlib

    head = b"\xf5irf" + struct.pack(">IQ", len(payload), 0)
    return head + struct.pack(">II", zlib.crc32(head) & 0xFFFFFFFF, zlib.crc32(payload) & 0xFFFFFFFF) + payload


def load_package():
    """Makes ``import irscope`` find the package around this file."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    spec = importlib.util.spec_from_file_location(
        "irscope", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules["irscope"] = module
    spec.loader.exec_module(module)


if __name__ == "__main__":
    boot()
else:
    sys.path[:] = PATH
