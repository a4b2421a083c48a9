"""The value process: evaluates expressions over stored tensors, with the user's own torch.

``python boot.py values`` reads one JSON object a line from its standard input, ``{"text", "file", "tensors"}`` (`tensors`:
values of a stage's data, by name; one that lies in another file than ``file`` says so by ``path``), and writes one a line:
``{"value", "text"}`` or ``{"error"}``.  With ``view`` it is ``{"picture"}`` (`irscope.values.run.picture`).
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from irscope.store.value_file import DamagedValues, StoredTensor
from irscope.values.run.expressions import BadExpression, evaluate
from irscope.values.run.picture import NoPicture, picture
from irscope.values.run.statistics import described, plain

_ELEMENTS = 1000


def main() -> None:
    """Answers until its input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what torch prints is not an answer
    import torch

    torch.set_grad_enabled(False)
    torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))
    answers.write('{"ready": true}\n')
    answers.flush()
    for line in sys.stdin:
        answers.write(json.dumps(_answered(line)) + "\n")
        answers.flush()


def _answered(line: str) -> dict[str, Any]:
    try:
        request = json.loads(line)
        path, tensors = request["file"], request["tensors"]

        def lookup(name: str) -> Any:
            if name not in tensors:
                raise LookupError(f"no value of {name!r} here")
            return _tensor(tensors[name].get("path", path), tensors[name])

        value = evaluate(request["text"], lookup)
        if "view" in request:
            return {"picture": picture(value, request["view"])}
        return {"value": _told(value), "text": _text(value)}
    except (BadExpression, DamagedValues, LookupError, NoPicture, OSError) as error:
        return {"error": str(error.args[0]) if error.args else type(error).__name__}
    except Exception as error:  # noqa: BLE001  the next request may be a better one
        return {"error": f"{type(error).__name__}: {error}"}


def _tensor(path: str, value: Any) -> Any:
    import torch

    stored = StoredTensor.of(value)
    if stored is None:
        raise LookupError("the elements of this tensor were not kept")
    dtype = getattr(torch, stored.dtype)
    if not stored.bytes:
        return torch.empty(stored.shape, dtype=dtype)
    with open(path, "rb") as file:
        file.seek(stored.offset)
        data = bytearray(file.read(stored.bytes))
    if len(data) != stored.bytes:
        raise DamagedValues("the file of values ends before the tensor")
    return torch.frombuffer(data, dtype=dtype).reshape(stored.shape)


def _told(value: Any) -> dict[str, Any]:
    """Statistics of a result, with its first elements."""
    import torch

    facts = described(value)
    if isinstance(value, torch.Tensor):
        facts["elements"] = [_element(each) for each in value.reshape(-1)[:_ELEMENTS].tolist()]
    return facts


def _element(value: Any) -> Any:
    return str(value) if isinstance(value, complex) else plain(value)


def _text(value: Any) -> str:
    """As torch prints it, in one line where it is short."""
    import torch

    if isinstance(value, torch.Tensor) and value.numel() == 1 and value.dim() == 0:
        return str(value.item())
    text = repr(value)
    return text if len(text) <= 4000 else f"{text[:4000]}…"
