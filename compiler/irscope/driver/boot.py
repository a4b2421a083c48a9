"""The first file of a run's process: ``python boot.py REQUEST_FD MESSAGE_FD``, of a worker: ``boot.py worker FD``, of a
value process: ``boot.py values``, or of one that prints facts of its environment: ``boot.py facts``.

It loads the irscope package from where this file lies, without touching ``sys.path``, so that the script sees the
modules that it would see without irscope.  It is written for old Pythons too, to tell them what is missing.
"""

import sys

AT_START = frozenset(sys.modules)

import gc  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402


def boot():
    """Do what the arguments of the process ask for: run a script, be a worker, answer about values, or print facts."""
    if sys.argv[1] == "worker":
        load_package()
        from irscope.worker.server import main

        main(int(sys.argv[2]))
        return
    if sys.argv[1] == "values":
        load_package()
        from irscope.values.run.process import main as answer

        answer()
        return
    if sys.argv[1] == "facts":
        load_package()
        from irscope.internals.environment_facts import main as print_facts

        print_facts()
        return
    request_fd, message_fd = int(sys.argv[1]), int(sys.argv[2])
    with os.fdopen(request_fd, "rb") as pipe:
        request = json.loads(pipe.read().decode("utf-8"))
    os.set_inheritable(message_fd, False)
    if sys.version_info < (3, 10):
        reason = (
            "Python %d.%d is too old: irscope needs Python 3.10 or newer. Choose another interpreter."
            % sys.version_info[:2]
        )
        os.write(message_fd, (json.dumps({"is": "Refused", "reason": reason}) + "\n").encode())
        return

    gc.disable()  # nothing of what is imported here becomes garbage; `run` sets it back when the script begins
    load_package()
    from irscope.runner.hidden_modules import shield_from

    folder = os.path.dirname(os.path.realpath(request["script"])) if os.path.isabs(request["script"]) else os.getcwd()
    shield_from(folder, AT_START)

    from irscope.protocol import RunRequest, from_json
    from irscope.runner.main import run
    from irscope.runner.messages import MessagePipe
    from irscope.system.warden import part

    part(message_fd)
    run(from_json(RunRequest, request), MessagePipe(message_fd))


def load_package():
    """Makes ``import irscope`` find the package around this file."""
    import importlib.util

    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    spec = importlib.util.spec_from_file_location(
        "irscope", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules["irscope"] = module
    spec.loader.exec_module(module)


boot()
