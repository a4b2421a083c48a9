"""Reads what ``save_compiled_function`` has written."""

from __future__ import annotations

import os
import re
from typing import Any

from irscope.ir.artifacts.caches import take_graphs
from irscope.ir.artifacts.contents import Artifact, ArtifactError, Guard, Part, Source
from irscope.ir.artifacts.inert import Record, walk
from irscope.ir.artifacts.reading import MOST_NAME, bytes_of, field_of, inner_pickle, number_of, text_of, unpickled

_MOST_NESTED = 50
_OF_SYSTEM = {
    "python_version": "Python",
    "torch_version": "PyTorch",
    "toolkit_version": "GPU toolkit",
    "triton_version": "Triton",
    "gpu_name": "GPU",
}


def read_saved_function(path: str, artifact: Artifact) -> None:
    """What ``save_compiled_function`` has written."""
    state = unpickled(bytes_of(path, artifact))
    if not isinstance(state, dict):
        raise ArtifactError("it is not what save_compiled_function writes")
    code = state.get("original_code")
    file = text_of(field_of(code, "co_filename"))
    if code is not None:
        artifact.functions.append(
            (text_of(field_of(code, "co_qualname")), file, number_of(field_of(code, "co_firstlineno")))
        )
    _take_system(state.get("system_info"), artifact)
    if isinstance(state.get("device_type"), str):
        artifact.made_for["device"] = state["device_type"]
    guards = _blob(state, "guards_state", artifact)
    _take_guards(guards, artifact)
    compiled = next((value for value in walk(state.get("compiled_fn")) if isinstance(value, bytes)), b"")
    artifact.parts.append(Part("compiled function", len(compiled)))
    inner = inner_pickle(compiled, "the compiled function", artifact) if compiled else None
    take_graphs(inner, "", artifact)
    _take_inputs(guards, inner, artifact)
    inlined = [
        value
        for value in walk(state.get("source_info"))
        if isinstance(value, Record) and value.short == "InlinedSource"
    ]
    name, line = text_of(field_of(code, "co_name")), number_of(field_of(code, "co_firstlineno"))
    own = {  # they are a set, in which the function itself is not the first
        text_of(value.get("module"))
        for value in inlined
        if number_of(value.get("firstlineno")) == line and f"def {name}" in text_of(value.get("content"))
    }
    for value in inlined:
        module, first, end = (
            text_of(value.get("module")),
            number_of(value.get("firstlineno")),
            number_of(value.get("lastlineno")),
        )
        here = file if module in own else _file_of(module, file)
        artifact.sources.append(Source(module, here, first, end, text_of(value.get("content"))))


def _file_of(module: str, beside: str) -> str:
    """The file of a module that is found beside a file; empty if none is."""
    path = os.path.join(os.path.dirname(beside), *module.split(".")) + ".py"
    return path if re.fullmatch(r"[\w.]+", module) and os.path.isfile(path) else ""


def _take_system(info: Any, artifact: Artifact) -> None:
    for field, name in _OF_SYSTEM.items():
        value = field_of(info, field)
        if isinstance(value, Record):  # torch.torch_version.TorchVersion
            value = value.args[0] if value.args else None
        if isinstance(value, tuple):
            value = ".".join(str(number_of(part)) for part in value)
        if isinstance(value, str) and value not in ("", "0.0"):
            artifact.made_for[name] = value[:MOST_NAME]


def _take_guards(state: Any, artifact: Artifact) -> None:
    for value in walk(state):
        if isinstance(value, Record) and value.name == "torch._guards.Guard":
            call = value.get("create_fn")
            inner = call.args[0] if isinstance(call, Record) and call.short == "partial" and call.args else call
            kind = inner.short if isinstance(inner, Record) else ""
            codes = value.get("code_list")
            code = (
                tuple(dict.fromkeys(text for text in codes if isinstance(text, str))) if isinstance(codes, list) else ()
            )
            file, line = _place(value.get("user_stack"))
            artifact.guards.append(Guard(kind, _source(value.get("originating_source")), code, file, line))


def _source(value: Any) -> str:
    """A guard's source as code (``L['self'].scale``), or its class."""
    attributes = ""
    for _ in range(_MOST_NESTED):
        if not isinstance(value, Record):
            return ""
        if value.short == "AttrSource" and len(value.args) > 1:
            attributes = f".{text_of(value.args[1])}{attributes}"
            value = value.args[0]
            continue
        is_local = value.short == "LocalSource" and value.args and isinstance(value.args[0], str)
        return (f"L[{value.args[0]!r}]" if is_local else value.short.removesuffix("Source")) + attributes
    return attributes


def _place(frames: Any) -> tuple[str, int]:
    """The innermost frame of a pickled stack."""
    found = "", 0
    for value in walk(frames):
        if isinstance(value, Record) and value.short == "FrameSummary":
            found = text_of(value.get("filename")), number_of(value.get("lineno"))
    return found


def _take_inputs(guards: Any, compiled: Any, artifact: Artifact) -> None:
    """The tensors among the locals, in the order of the graph's inputs."""
    scope = field_of(field_of(guards, "output_graph"), "local_scope")
    order: list[str] = []
    for value in walk(compiled):
        if isinstance(value, Record) and isinstance(sources := value.get("aot_autograd_arg_pos_to_source"), list):
            order = [
                one.args[0] for one in sources if isinstance(one, Record) and one.short == "LocalSource" and one.args
            ]
            if len(order) != len(sources):
                order = []
    for name in order:
        found = _tensor(scope.get(name)) if isinstance(scope, dict) and isinstance(name, str) else None
        if found is None:
            artifact.inputs.clear()
            return
        artifact.inputs[name] = found


def _tensor(value: Any) -> dict[str, str] | None:
    if not (isinstance(value, Record) and value.short == "_unpickle_tensor" and len(value.args) > 1):
        return None
    meta, device = value.args[:2]
    if not (isinstance(meta, Record) and len(meta.args) > 2 and isinstance(meta.args[0], Record)):
        return None
    dtype, shape, stride = meta.args[:3]
    if not all(
        isinstance(part, tuple) and all(isinstance(each, int) and 0 <= each < 1 << 60 for each in part)
        for part in (shape, stride)
    ):
        return None
    where = device.args[0] if isinstance(device, Record) and device.args else ""
    return {
        "shape": f"torch.Size({list(shape)})",
        "dtype": dtype.name,
        "device": f"device(type={where!r})",
        "stride": repr(stride),
    }


def _blob(state: dict[Any, Any], field: str, artifact: Artifact) -> Any:
    """A pickle that is a field of a state; it becomes a part."""
    data = state.get(field)
    if not isinstance(data, bytes):
        return None
    artifact.parts.append(Part(field, len(data)))
    return inner_pickle(data, field, artifact)
