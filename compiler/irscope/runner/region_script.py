"""Calls each graph that `kept_regions` wrote beside this file, compiled: what a comparison of pipelines runs as its script.

The driver copies this file next to the graphs, which a process of the same user wrote a moment ago in a private folder.  So it
imports nothing of irscope's, and may unpickle them.
"""

import contextlib
import importlib
import os
import sys
import traceback
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))


def made(about: dict[str, Any], name: str) -> Any:
    """The module of a graph that `kept_regions.described` told."""
    import torch  # here: a module of the capture side can be loaded without it

    path = os.path.join(_HERE, f"{name}.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(about["text"])
    names = about["names"] | {key: importlib.import_module(module) for key, module in about["modules"].items()}
    exec(compile(about["text"], path, "exec"), names)
    module: Any = type(name, (torch.nn.Module,), {"forward": names["forward"]})()
    for number, (target, one) in enumerate(about["attributes"].items()):
        value = made(one["inner"], f"{name}_{number}") if "inner" in one else one["value"]
        *outer, last = target.split(".")
        owner = module
        for part in outer:
            if not hasattr(owner, part):
                setattr(owner, part, torch.nn.Module())
            owner = getattr(owner, part)
        if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
            owner.register_buffer(last, value)
        else:
            setattr(owner, last, value)
    return module


def main() -> None:
    """Calls all of them; one that fails does not keep the others from it."""
    import torch

    number = 0
    while os.path.exists(path := os.path.join(_HERE, f"{number}.pt")):
        try:
            about = torch.load(path, weights_only=False)
            compiled = torch.compile(made(about["graph"], about["name"]))
            grad = torch.inference_mode() if about["inference"] else torch.set_grad_enabled(about["grad"])
            with grad, contextlib.redirect_stdout(sys.stderr):
                compiled(*about["args"])
        except Exception:  # noqa: BLE001  whatever a pipeline raises is its answer, which is told when it is timed
            traceback.print_exc()
        number += 1


if __name__ == "__main__":
    main()
