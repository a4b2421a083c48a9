"""``python inductor_command.py KERNEL.cpp [INSTRUCTIONS]`` in the user's interpreter: the command that Inductor compiles it with.

Nothing is compiled and no kernel is executed here: Inductor is asked to compile in the background, and what it hands
to the background is read instead of run.  Prints one line of JSON: ``command`` (words), ``source`` and ``target``
(the paths in it), or ``error``.

With a set of instructions (``avx512``) it is the command for a CPU that has it, and not for that of this machine.

Checked on torch 2.9 to 2.13.
"""

from __future__ import annotations

import json
import os
import runpy
import shlex
import sys
from collections.abc import Iterator
from typing import Any


class Caught(Exception):
    """Carries the work that Inductor wanted to be done."""


def catch(work: Any) -> Any:
    """Raise the work instead of doing it, so that `command_for` gets it."""
    raise Caught(work)


def command_for(text: str, instructions: str = "") -> dict[str, Any]:
    """The compiler's command for the text of a kernel, as ``command``, ``source`` and ``target``; or an ``error``."""
    import torch._inductor.config as config
    from torch._inductor.codecache import CppPythonBindingsCodeCache

    march = "native"
    if instructions:
        stand_in = runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), "cpu_stand_in.py"))
        stand_in["become"](instructions)
        march = stand_in["MARCH"][instructions]
    config.cpp_cache_precompile_headers = False  # they change no instruction, and would be compiled now
    try:
        CppPythonBindingsCodeCache.load_async(text, device_type="cpu", submit_fn=catch)
    except Caught as caught:
        builders = [item for item in flat(caught.args[0].args) if hasattr(item, "get_command_line")]
        words = shlex.split(builders[0].get_command_line())
        words = [f"-march={march}" if word == "-march=native" else word for word in words]
        target = words[words.index("-o") + 1]
        source = next(word for word in words if word.endswith(".cpp"))
        return {"command": words, "source": source, "target": target}
    return {"error": "This torch loads the kernel instead of reporting how it would compile it."}


def flat(items: Any) -> Iterator[Any]:
    """The items of nested lists and tuples, in order."""
    for item in items:
        if isinstance(item, (tuple, list)):
            yield from flat(item)
        else:
            yield item


def main() -> None:
    """Print the answer for the file that is named, as one JSON line."""
    try:
        with open(sys.argv[1], encoding="utf-8", errors="surrogateescape") as file:
            answer = command_for(file.read(), *sys.argv[2:])
    except ImportError as error:
        answer = {
            "error": f"{sys.executable} has no torch with Inductor ({error}). Name another interpreter: --python PATH or IRSCOPE_PYTHON."
        }
    except Exception as error:  # noqa: BLE001  whatever it is, it is said
        answer = {"error": f"This torch does not report how it compiles a kernel: {type(error).__name__}: {error}"}
    print("\n" + json.dumps(answer))


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if path != here]  # no place to import from
    main()
