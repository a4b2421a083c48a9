"""Reads entries of compile caches: a Mega-Cache, a standalone artifact, a folder."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
import stat
import zlib
from collections.abc import Iterator
from typing import Any

from irscope.ir.artifacts.contents import Artifact, ArtifactError, Part
from irscope.ir.artifacts.inert import Record, walk
from irscope.ir.artifacts.reading import MOST_FILES, MOST_MEMBER, bytes_of, inner_pickle, json_of, text_of
from irscope.vocabulary.units import size

CACHE_HEADER, AOT_HEADER = b"CacheCompiledArtifact", b"AOTCompiledArtifact"
MEGA_VERSION = (1).to_bytes(8, "big")
CACHE_FOLDERS = ("fxgraph", "aotautograd", "triton")
_KERNEL = re.compile(r"^(\w{1,1000}) = async_compile\.\w{1,40}\(", re.MULTILINE)
_QUOTES, _BEFORE_TEXT = "'''", 4000
"""How far before a kernel's text its name is looked for, in characters."""
_FLOATS = re.compile(r"Vectorized<float>::loadu\([^;\n]{1,300}, static_cast<int64_t>\((\d{1,3})\)\)")
_GPU_NAME = re.compile(r"'name': '([^']{1,80})'")
_EXAMPLE = re.compile(
    r"\[\w+\] example_inputs\[(?P<index>\d+)\]: TensorMetadata\(dtype=(?P<dtype>[\w.]+), shape=(?P<shape>torch\.Size\(\[[^\]]*\]\)), "
    r"stride=(?P<stride>\([^)]*\)), device=(?P<device>device\([^)]*\))"
)
VECTORS = "CPU vectors"
_TEXTS = {
    "aot_joint_graph_str": ("joint graph", "aot_joint_graph"),
    "aot_forward_graph_str": ("forward graph", "aot_forward_graph"),
    "aot_backward_graph_str": ("backward graph", "aot_backward_graph"),
    "inductor_post_grad_graph_str": ("post-grad graph", "inductor_post_grad_graph"),
    "source_code": ("output code", "inductor_output_code"),
    "inductor_provenance_stack_traces_str": ("", "inductor_provenance_tracking_kernel_stack_traces"),
}
"""By field of a compiled graph its title, and the event of the trace with the same text."""


class _Fields:
    """Fields as PyTorch's BytesWriter has written them: a CRC, then numbers of 8 bytes and bytes with their length."""

    def __init__(self, data: bytes) -> None:
        if data[:4] != zlib.crc32(data[4:]).to_bytes(4, "big"):
            raise ArtifactError("its checksum does not match: it is damaged or cut off")
        self._data, self._at = data, 4

    @property
    def at_end(self) -> bool:
        """Whether all has been read."""
        return self._at >= len(self._data)

    def number(self) -> int:
        """The next number."""
        return int.from_bytes(self._take(8), "big")

    def block(self) -> bytes:
        """The next bytes."""
        return self._take(self.number())

    def text(self) -> str:
        """The next text."""
        try:
            return base64.b64decode(self.block(), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError) as error:
            raise ArtifactError("a name in it is damaged") from error

    def _take(self, length: int) -> bytes:
        found = self._data[self._at : self._at + length]
        if len(found) < length:
            raise ArtifactError("it is cut off")
        self._at += length
        return found


def take_graphs(value: Any, title: str, artifact: Artifact) -> None:
    """The graphs, kernels and keys of a compiled graph, or of an entry that has some."""
    texts: list[tuple[str, str]] = []
    named: list[str] = []  # the entries of the FX graph cache that one of the AOTAutograd cache names
    for here in walk(value):
        if not isinstance(here, Record):
            named += [artifact.lowered[here]] if isinstance(here, str) and here in artifact.lowered else []
            continue
        texts += _take_texts(here, title, artifact)
        lines, key = here.get("_fx_graph_cache_debug_lines"), here.get("_fx_graph_cache_key")
        if isinstance(lines, list) and isinstance(key, str):
            artifact.keys[key] = [line for line in lines if isinstance(line, str)]
            _take_gpu(artifact.keys[key], artifact)
        devices = here.get("device_types")
        if isinstance(devices, Record):
            names = [name for name in walk(devices.args) if isinstance(name, str)]
            if names:
                artifact.made_for.setdefault("device", ", ".join(names))
    _join(texts, named, artifact)


def _join(texts: list[tuple[str, str]], named: list[str], artifact: Artifact) -> None:
    """Adds an entry with the texts of those that it names, by their post-grad graphs."""
    parts = [group for group in artifact.compiled if any(text in named for _, text in group)]
    artifact.compiled = [group for group in artifact.compiled if group not in parts]
    if joined := dict.fromkeys([*texts, *(pair for group in parts for pair in group)]):
        artifact.compiled.append(list(joined))


def _take_texts(compiled: Record, title: str, artifact: Artifact) -> Iterator[tuple[str, str]]:
    """Takes in the printed graphs of a compiled graph and its output code with the kernels in it; yields them by event."""
    for field, (name, event) in _TEXTS.items():
        text = compiled.get(field)
        if not isinstance(text, str) or not text:
            continue
        yield event, text
        if not name:
            continue
        name = _free(f"{title}{name}", artifact.graphs)
        artifact.graphs[name] = text
        if field == "inductor_post_grad_graph_str":
            artifact.lowered[text_of(compiled.get("_fx_graph_cache_key")) or name] = text
        if field == "source_code":
            take_kernels(text, artifact)


def take_kernels(text: str, artifact: Artifact) -> None:
    """The kernels of an output code, with the CPU vectors that they are written for."""
    for kernel, source in _kernels_in(text):
        artifact.kernels[_free(kernel, artifact.kernels)] = source
        _take_vectors(source, artifact)


def _take_vectors(kernel: str, artifact: Artifact) -> None:
    """The width of the CPU vectors that a kernel's text is written for; a library of kernels does not say it."""
    lanes = max(map(int, _FLOATS.findall(kernel)), default=0)
    if lanes and f"<float>({lanes})" not in kernel:
        known = int(artifact.made_for.get(VECTORS, "0").partition(" ")[0])
        artifact.made_for[VECTORS] = f"{max(known, lanes * 32)} bits"


def _take_gpu(lines: list[str], artifact: Artifact) -> None:
    """The GPU in the parts of a key; a key of the CPU has none."""
    for line in lines:
        if "] system_info[" in line[:80] and (found := _GPU_NAME.search(line)):
            artifact.made_for.setdefault("GPU", found[1])


def _kernels_in(text: str) -> Iterator[tuple[str, str]]:
    """The kernels of an output code, with their names."""
    pieces = text.split(_QUOTES)
    for before, source in zip(pieces[::2], pieces[1::2], strict=False):
        names = _KERNEL.findall(before[-_BEFORE_TEXT:])
        if names:
            yield names[-1], source


def _free(title: str, taken: dict[str, str]) -> str:
    number, free = 2, title
    while free in taken:
        free, number = f"{title} ({number})", number + 1
    return free


def _take_entry(kind: str, key: str, data: bytes, artifact: Artifact) -> None:
    artifact.parts.append(Part(f"{kind} {key}", len(data)))
    if data[:1] == b"\x80":
        take_graphs(inner_pickle(data, f"{kind} {key}", artifact), "", artifact)


def read_mega_cache(path: str, artifact: Artifact) -> None:
    """What ``torch.compiler.save_cache_artifacts`` returns."""
    read_mega(bytes_of(path, artifact), artifact)


def keys_of_mega_cache(data: bytes) -> dict[str, list[str]]:
    """The parts of each key of the FX graph cache, by the key.  Raises ArtifactError."""
    artifact = Artifact("", "", "")
    read_mega(data, artifact)
    return artifact.keys


def read_mega(data: bytes, artifact: Artifact) -> None:
    """The bytes of a Mega-Cache.  Raises ArtifactError."""
    fields = _Fields(data)
    if fields.number() != 1:
        raise ArtifactError("its format has another version than 1")
    while not fields.at_end:
        kind = fields.text()
        for _ in range(fields.number()):
            if len(artifact.parts) >= MOST_FILES:
                raise ArtifactError(f"it has more than {MOST_FILES:,} entries")
            key = fields.text()
            _take_entry(kind, key, fields.block(), artifact)


def read_standalone(path: str, artifact: Artifact) -> None:
    """What ``CompiledArtifact.save`` writes as one file."""
    fields = _Fields(bytes_of(path, artifact))
    header = fields.block()
    artifact.made_for["key of PyTorch"] = fields.block().hex()[:16]
    if header == CACHE_HEADER:
        fields.text()
        read_mega(fields.block(), artifact)
    else:
        _take_entry("bundled", "function", fields.block(), artifact)
    artifact.inputs |= example_inputs(artifact)


def example_inputs(artifact: Artifact) -> dict[str, dict[str, str]]:
    """The inputs in the key of the one forward graph; empty if there are more: which of them takes the inputs is not known."""
    forward = [lines for lines in artifact.keys.values() if not any("[is_backward]: True" in line for line in lines)]
    matches = (_EXAMPLE.match(line) for line in (forward[0] if len(forward) == 1 else ()))
    return {
        f"input {found['index']}": {name: found[name] for name in ("dtype", "shape", "stride", "device")}
        for found in matches
        if found
    }


def read_folder(path: str, artifact: Artifact) -> None:
    """A folder of caches, or what ``CompiledArtifact.save`` writes as a folder."""
    whole = hashlib.sha256()
    for number, (folder, name, file) in enumerate(_files(path)):
        if number >= MOST_FILES:
            artifact.problems.append(f"only the first {MOST_FILES:,} files were read")
            break
        length = os.path.getsize(file)
        artifact.size += length
        if length > MOST_MEMBER:
            artifact.problems.append(f"{name} was not read: it has {size(length)}")
            continue
        with open(file, "rb") as stream:
            data = stream.read(MOST_MEMBER)
        whole.update(name.encode(errors="replace") + hashlib.sha256(data).digest())
        if folder == "triton":
            artifact.parts.append(Part(name, length))
            if name.endswith(".json") and not os.path.basename(name).startswith("__grp__"):
                _take_triton(data, artifact)
        else:
            _take_entry(folder, os.path.basename(os.path.dirname(file)), data, artifact)
    artifact.digest = whole.hexdigest()


def _files(path: str) -> Iterator[tuple[str, str, str]]:
    """The regular files of the caches in a folder; links are not followed."""
    for folder in CACHE_FOLDERS:
        for parent, folders, names in os.walk(os.path.join(path, folder)):
            folders.sort()
            for name in sorted(names):
                file = os.path.join(parent, name)
                if stat.S_ISREG(os.lstat(file).st_mode):
                    yield folder, os.path.relpath(file, path), file


def _take_triton(data: bytes, artifact: Artifact) -> None:
    facts = json_of(data)
    if not isinstance(facts, dict) or not isinstance(facts.get("name"), str):
        return
    artifact.kernels.setdefault(facts["name"], "")
    target = facts.get("target")
    if isinstance(target, dict):
        artifact.made_for["GPU target"] = f"{target.get('backend')} {target.get('arch')}"
    if isinstance(facts.get("triton_version"), str):
        artifact.made_for["Triton"] = facts["triton_version"]
