"""A package (``.pt2``) of AOTInductor: what is in it, and why it cannot take the place of the program."""

from __future__ import annotations

import importlib
import sys
import zipfile
from typing import Any

_SHOWN = 1000
"""Files that are listed at most."""
_OURS = "kernel_information.json"
"""AOTInductor packs it only because the capture has turned provenance tracking on."""


def contents_of(path: str) -> list[tuple[str, int]]:
    """The files in a package with their sizes in bytes, without the folder that all of them are in."""
    with zipfile.ZipFile(path) as archive:
        files = [(one.filename.partition("/")[2], one.file_size) for one in archive.infolist() if not one.is_dir()]
    return [(name, size) for name, size in files if name.rpartition("/")[2] != _OURS]


def contents_text(files: list[tuple[str, int]]) -> str:
    """The files of a package, one a line."""
    total = f"{sum(size for _, size in files):,}"
    rows = [f"{size:>{len(total)},}  {name}" for name, size in files[:_SHOWN]]
    if len(files) > _SHOWN:
        rows.append(f"… and {len(files) - _SHOWN} more files")
    return "\n".join([f"{total} bytes in {len(files)} files", "", *rows, ""])


def unlike(exported: Any) -> str:
    """Why a package computes something else than an exported program does; empty if it does not.

    A package has its own copy of parameters and buffers; if the script changes one that the program returned, only the
    copy changes.
    """
    signature = exported.graph_signature
    memory = {node.name: _memory_of(node.meta.get("val")) for node in exported.graph.nodes}
    weights = {
        memory.get(spec.arg.name): str(spec.target)
        for spec in signature.input_specs
        if spec.kind.name in ("PARAMETER", "BUFFER", "CONSTANT_TENSOR")
    }
    weights.pop(None, None)
    outputs = (memory.get(getattr(spec.arg, "name", "")) for spec in signature.output_specs)
    returned = next((weights[one] for one in outputs if one in weights), "")
    return f"it returns {returned}, of which a package has a copy" if returned else ""


def beside_the_cpu(exported: Any) -> str:
    """The type of the device that an exported program uses beside the CPU, such as ``cuda``; empty if there is none."""
    devices = (getattr(node.meta.get("val"), "device", None) for node in exported.graph.nodes)
    return next((str(device.type) for device in devices if device is not None and device.type != "cpu"), "")


def _memory_of(value: Any) -> Any:
    """Something that is equal for tensors that share memory; None if it is not a tensor with memory."""
    torch: Any = sys.modules["torch"]
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return None
    shared: Any = importlib.import_module("torch.multiprocessing.reductions")
    return shared.StorageWeakRef(value.untyped_storage())
