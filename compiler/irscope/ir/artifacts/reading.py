"""Reads each kind of artifact into an `Artifact`.  Pickles go through the inert reader; sizes and numbers are bounded."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import mmap
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

from irscope.ir.artifacts.contents import Artifact, ArtifactError, Guard, Part, Source
from irscope.ir.artifacts.inert import PickleError, Record, read, walk
from irscope.vocabulary.units import size

CACHE_HEADER, AOT_HEADER = b"CacheCompiledArtifact", b"AOTCompiledArtifact"
MEGA_VERSION = (1).to_bytes(8, "big")
CACHE_FOLDERS = ("fxgraph", "aotautograd", "triton")
_MOST_BYTES = 4 << 30
_MOST_FILES = 20_000
_MOST_MEMBER = 256 << 20
_RATIO = 400
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
_MOST_NAME, _MOST_NESTED = 300, 50
_TEXTS = {
    "aot_joint_graph_str": ("joint graph", "aot_joint_graph"),
    "aot_forward_graph_str": ("forward graph", "aot_forward_graph"),
    "aot_backward_graph_str": ("backward graph", "aot_backward_graph"),
    "inductor_post_grad_graph_str": ("post-grad graph", "inductor_post_grad_graph"),
    "source_code": ("output code", "inductor_output_code"),
    "inductor_provenance_stack_traces_str": ("", "inductor_provenance_tracking_kernel_stack_traces"),
}
"""By field of a compiled graph its title, and the event of the trace with the same text."""
_OF_SYSTEM = {
    "python_version": "Python",
    "torch_version": "PyTorch",
    "toolkit_version": "GPU toolkit",
    "triton_version": "Triton",
    "gpu_name": "GPU",
}
_OF_PACKAGE = {
    "AOTI_DEVICE_KEY": "device",
    "AOTI_PLATFORM": "platform",
    "AOTI_MACHINE": "machine",
    "AOTI_CPU_ISA": "CPU features",
    "AOTI_COMPUTE_CAPABILITY": "compute capability",
}


# --- bytes --------------------------------------------------------------------------------------------------------------


def _bytes_of(path: str, artifact: Artifact) -> bytes:
    length = os.path.getsize(path)
    if length > _MOST_BYTES:
        raise ArtifactError(f"it has {size(length)}, more than {size(_MOST_BYTES)}")
    with open(path, "rb") as file:
        data = file.read(_MOST_BYTES)
    artifact.digest, artifact.size = hashlib.sha256(data).hexdigest(), len(data)
    return data


def has_bytes(path: str, wanted: bytes) -> bool:
    """Whether a file has these bytes anywhere."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(wanted) >= 0


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


def _unpickled(data: bytes) -> Any:
    try:
        return read(data)
    except PickleError as error:
        raise ArtifactError(f"a pickle in it is not readable: {error}") from error


def _inner(data: bytes, what: str, artifact: Artifact) -> Any:
    """A pickle in an artifact; None, and a problem, if it cannot be read: the rest is shown."""
    try:
        return read(data)
    except PickleError as error:
        artifact.problems.append(f"{what}: {error}")
        return None


# --- aot_compile --------------------------------------------------------------------------------------------------------


def read_saved_function(path: str, artifact: Artifact) -> None:
    """What ``save_compiled_function`` has written."""
    state = _unpickled(_bytes_of(path, artifact))
    if not isinstance(state, dict):
        raise ArtifactError("it is not what save_compiled_function writes")
    code = state.get("original_code")
    file = _text(_field(code, "co_filename"))
    if code is not None:
        artifact.functions.append((_text(_field(code, "co_qualname")), file, _number(_field(code, "co_firstlineno"))))
    _take_system(state.get("system_info"), artifact)
    if isinstance(state.get("device_type"), str):
        artifact.made_for["device"] = state["device_type"]
    guards = _blob(state, "guards_state", artifact)
    _take_guards(guards, artifact)
    compiled = next((value for value in walk(state.get("compiled_fn")) if isinstance(value, bytes)), b"")
    artifact.parts.append(Part("compiled function", len(compiled)))
    inner = _inner(compiled, "the compiled function", artifact) if compiled else None
    _take_graphs(inner, "", artifact)
    _take_inputs(guards, inner, artifact)
    inlined = [
        value
        for value in walk(state.get("source_info"))
        if isinstance(value, Record) and value.short == "InlinedSource"
    ]
    name, line = _text(_field(code, "co_name")), _number(_field(code, "co_firstlineno"))
    own = {  # they are a set, in which the function itself is not the first
        _text(value.get("module"))
        for value in inlined
        if _number(value.get("firstlineno")) == line and f"def {name}" in _text(value.get("content"))
    }
    for value in inlined:
        module, first, end = (
            _text(value.get("module")),
            _number(value.get("firstlineno")),
            _number(value.get("lastlineno")),
        )
        here = file if module in own else _file_of(module, file)
        artifact.sources.append(Source(module, here, first, end, _text(value.get("content"))))


def _file_of(module: str, beside: str) -> str:
    """The file of a module that is found beside a file; empty if none is."""
    path = os.path.join(os.path.dirname(beside), *module.split(".")) + ".py"
    return path if re.fullmatch(r"[\w.]+", module) and os.path.isfile(path) else ""


def _take_system(info: Any, artifact: Artifact) -> None:
    for field, name in _OF_SYSTEM.items():
        value = _field(info, field)
        if isinstance(value, Record):  # torch.torch_version.TorchVersion
            value = value.args[0] if value.args else None
        if isinstance(value, tuple):
            value = ".".join(str(_number(part)) for part in value)
        if isinstance(value, str) and value not in ("", "0.0"):
            artifact.made_for[name] = value[:_MOST_NAME]


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
            attributes = f".{_text(value.args[1])}{attributes}"
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
            found = _text(value.get("filename")), _number(value.get("lineno"))
    return found


def _take_inputs(guards: Any, compiled: Any, artifact: Artifact) -> None:
    """The tensors among the locals, in the order of the graph's inputs."""
    scope = _field(_field(guards, "output_graph"), "local_scope")
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


# --- cache entries ------------------------------------------------------------------------------------------------------


def _take_graphs(value: Any, title: str, artifact: Artifact) -> None:
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
            artifact.lowered[_text(compiled.get("_fx_graph_cache_key")) or name] = text
        if field == "source_code":
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
        _take_graphs(_inner(data, f"{kind} {key}", artifact), "", artifact)


def read_mega_cache(path: str, artifact: Artifact) -> None:
    """What ``torch.compiler.save_cache_artifacts`` returns."""
    _mega(_bytes_of(path, artifact), artifact)


def keys_of_mega_cache(data: bytes) -> dict[str, list[str]]:
    """The parts of each key of the FX graph cache, by the key.  Raises ArtifactError."""
    artifact = Artifact("", "", "")
    _mega(data, artifact)
    return artifact.keys


def _mega(data: bytes, artifact: Artifact) -> None:
    fields = _Fields(data)
    if fields.number() != 1:
        raise ArtifactError("its format has another version than 1")
    while not fields.at_end:
        kind = fields.text()
        for _ in range(fields.number()):
            if len(artifact.parts) >= _MOST_FILES:
                raise ArtifactError(f"it has more than {_MOST_FILES:,} entries")
            key = fields.text()
            _take_entry(kind, key, fields.block(), artifact)


def read_standalone(path: str, artifact: Artifact) -> None:
    """What ``CompiledArtifact.save`` writes as one file."""
    fields = _Fields(_bytes_of(path, artifact))
    header = fields.block()
    artifact.made_for["key of PyTorch"] = fields.block().hex()[:16]
    if header == CACHE_HEADER:
        fields.text()
        _mega(fields.block(), artifact)
    else:
        _take_entry("bundled", "function", fields.block(), artifact)
    forward = [lines for lines in artifact.keys.values() if not any("[is_backward]: True" in line for line in lines)]
    if len(forward) == 1:  # else which of them takes the inputs is not known
        for line in forward[0]:
            if found := _EXAMPLE.match(line):
                facts = {name: found[name] for name in ("dtype", "shape", "stride", "device")}
                artifact.inputs[f"input {found['index']}"] = facts


def read_folder(path: str, artifact: Artifact) -> None:
    """A folder of caches, or what ``CompiledArtifact.save`` writes as a folder."""
    whole = hashlib.sha256()
    for number, (folder, name, file) in enumerate(_files(path)):
        if number >= _MOST_FILES:
            artifact.problems.append(f"only the first {_MOST_FILES:,} files were read")
            break
        length = os.path.getsize(file)
        artifact.size += length
        if length > _MOST_MEMBER:
            artifact.problems.append(f"{name} was not read: it has {size(length)}")
            continue
        with open(file, "rb") as stream:
            data = stream.read(_MOST_MEMBER)
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
    facts = _json(data)
    if not isinstance(facts, dict) or not isinstance(facts.get("name"), str):
        return
    artifact.kernels.setdefault(facts["name"], "")
    target = facts.get("target")
    if isinstance(target, dict):
        artifact.made_for["GPU target"] = f"{target.get('backend')} {target.get('arch')}"
    if isinstance(facts.get("triton_version"), str):
        artifact.made_for["Triton"] = facts["triton_version"]


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


# --- archives -----------------------------------------------------------------------------------------------------------


def names_in(path: str) -> list[str]:
    """The names in a ZIP archive; empty if it is damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()[:_MOST_FILES]
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return []


def _members(path: str, artifact: Artifact, wanted: re.Pattern[str]) -> Iterator[tuple[str, bytes]]:
    """The members whose names match, with their bytes; all members become parts."""
    with zipfile.ZipFile(path) as archive:
        if len(archive.infolist()) > _MOST_FILES:
            raise ArtifactError(f"its archive has more than {_MOST_FILES:,} files")
        for info in archive.infolist():
            artifact.parts.append(Part(info.filename, info.file_size))
            if wanted.search(info.filename) is None:
                continue
            if info.file_size > min(_MOST_MEMBER, (1 << 20) + info.compress_size * _RATIO):
                raise ArtifactError(f"{info.filename} is packed too tightly: it would have {size(info.file_size)}")
            with archive.open(info) as stream:
                data = stream.read(info.file_size + 1)
            if len(data) > info.file_size:
                raise ArtifactError(f"{info.filename} is longer than it says")
            yield info.filename, data


def read_package(path: str, artifact: Artifact) -> None:
    """What ``aoti_compile_and_package`` writes."""
    artifact.digest, artifact.size = _digest_of(path), os.path.getsize(path)
    try:
        for name, data in _members(path, artifact, re.compile(r"metadata\.json$|\.cpp$")):
            if name.endswith(".json"):
                facts = _json(data)
                for key, label in _OF_PACKAGE.items():
                    if isinstance(facts, dict) and isinstance(facts.get(key), str) and facts[key]:
                        artifact.made_for[label] = facts[key]
            else:
                texts = artifact.kernels if ".kernel." in name else artifact.graphs
                texts[os.path.basename(name)] = text = data.decode(errors="replace")
                if ".kernel." not in name:
                    _take_checks(text, artifact)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error, ValueError) as error:
        raise ArtifactError(f"its archive is damaged ({type(error).__name__})") from error


_CHECKS = re.compile(
    r"input_handles\[(?P<input>\d{1,4})\]: (?P<what>unmatched dtype|unmatched (?P<of>dim|stride) value at (?P<at>\d{1,2})"
    r"|dim value is too (?P<way>small|large) at (?P<end>\d{1,2})|unmatched device type),[^;]{0,200}?"
    r"(?:\((?:at::)?k(?P<dtype>\w+)\)|\d\((?P<device>\w+)\)|(?:<=|>=|expected:) (?P<number>\d{1,18}))"
)
_DTYPES = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64", "Int": "int32",
    "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool",
}  # fmt: skip


def _take_checks(text: str, artifact: Artifact) -> None:
    """The inputs of a package, from the checks of its wrapper; none if a dimension is not the last or has a gap."""
    facts: dict[int, dict[str, Any]] = {}
    for found in _CHECKS.finditer(text):
        fact = facts.setdefault(int(found["input"]), {"dim": {}, "stride": {}})
        if found["dtype"]:
            fact["dtype"] = f"torch.{_DTYPES.get(found['dtype'], found['dtype'].lower())}"
        elif found["device"]:
            fact["device"] = f"device(type={found['device']!r})"
        elif found["of"]:
            fact[found["of"]][int(found["at"])] = found["number"]
        elif found["way"]:
            low, _, high = fact["dim"].get(int(found["end"]), "..").partition("..")
            low, high = (found["number"], high) if found["way"] == "small" else (low, found["number"])
            fact["dim"][int(found["end"])] = f"{low}..{high}"
    for index, fact in sorted(facts.items()):
        rank = max([*fact["dim"], *fact["stride"]], default=-1) + 1
        artifact.inputs[f"input {index}"] = {
            "shape": f"torch.Size([{', '.join(fact['dim'].get(at, '..') for at in range(rank))}])",
            "dtype": fact.get("dtype", ""),
            "device": fact.get("device", ""),
            "stride": f"({', '.join(fact['stride'].get(at, '..') for at in range(rank))}{',' * (rank == 1)})",
        }

    for found in _CONSTANT.finditer(text):
        shape, stride = (", ".join(found[field].split(", ")) for field in ("shape", "stride"))
        artifact.weights[found["name"][:_MOST_NAME]] = {
            "shape": f"torch.Size([{shape}])",
            "dtype": f"torch.{found['dtype']}",
            "device": f"device(type={found['device']!r})",
            "stride": f"({stride}{',' * (stride != '' and ', ' not in stride)})",
        }


_CONSTANT = re.compile(
    r"\.dtype = cached_torch_dtype_(?P<dtype>\w{1,30});\s+constants_info_\[\d+\]\.device_type = cached_torch_device_type_(?P<device>\w{1,30});"
    r"[^}]{0,400}?\.from_folded = false;[^}]{0,300}?\.shape = \{(?P<shape>[\d, ]*)\};\s+constants_info_\[\d+\]\.stride = \{(?P<stride>[\d, ]*)\};"
    r"[^;}]{0,200};\s+constants_info_\[\d+\]\.original_fqn = \"(?P<name>[^\"\n]*)\""
)


def read_program(path: str, artifact: Artifact) -> None:
    """What ``torch.export.save`` writes."""
    artifact.digest, artifact.size = _digest_of(path), os.path.getsize(path)
    try:
        for name, data in _members(path, artifact, re.compile(r"/models/[^/]+\.json$")):
            facts = _json(data)
            if not isinstance(facts, dict):
                raise ArtifactError(f"{name} is not JSON")
            artifact.graphs[os.path.basename(name)] = data.decode(errors="replace")
            if isinstance(facts.get("torch_version"), str):
                artifact.made_for["PyTorch"] = facts["torch_version"]
            _take_program(facts, artifact)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error, ValueError) as error:
        raise ArtifactError(f"its archive is damaged ({type(error).__name__})") from error


_OF_NUMBER = (
    "", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32", "complex64", "complex128",
    "bool", "bfloat16",
)  # fmt: skip
"""The dtypes of torch.export's schema by their numbers."""


def _take_program(facts: Any, artifact: Artifact) -> None:
    """The inputs of the user and the lines of each node, from the graph of a program."""
    try:
        graph, ranges = facts["graph_module"]["graph"], facts["range_constraints"]
        for spec in facts["graph_module"]["signature"]["input_specs"]:
            weight = spec.get("parameter") or spec.get("buffer")
            argument = weight["arg"] if weight else spec.get("user_input", {}).get("arg", {}).get("as_tensor")
            if argument is None:
                continue
            name = (weight.get("parameter_name") or weight.get("buffer_name")) if weight else argument["name"]
            facts_of_tensor = _of_program(graph["tensor_values"][argument["name"]], ranges)
            (artifact.weights if weight else artifact.inputs)[_text(name)[:_MOST_NAME]] = facts_of_tensor
        for node in graph["nodes"]:
            trace = _text(node.get("metadata", {}).get("stack_trace"))
            model = _MODEL.search(_text(node.get("metadata", {}).get("nn_module_stack")))
            first = _FRAME.search(trace[:_BEFORE_TEXT])
            if model and first and not artifact.functions:
                artifact.functions.append((f"{model[1]}.{first['function']}", first["file"], 0))
            frames = _FRAME.finditer(trace[:_BEFORE_TEXT])
            artifact.code += [(one["file"], int(one["line"]), one["function"], one["code"]) for one in frames]
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        artifact.problems.append(f"the graph of the program is not as expected ({type(error).__name__})")


def _of_program(tensor: Any, ranges: Any) -> dict[str, str]:
    """A tensor of a program as cache keys print it."""
    shape = ", ".join(_extent(one, ranges) for one in tensor["sizes"])
    stride = ", ".join(str(one.get("as_int", "..")) for one in tensor["strides"])
    return {
        "shape": f"torch.Size([{shape}])",
        "dtype": f"torch.{_OF_NUMBER[tensor['dtype']]}",
        "device": f"device(type={_text(tensor['device']['type'])!r})",
        "stride": f"({stride}{',' * (len(tensor['strides']) == 1)})",
    }


_SYMBOL = re.compile(r"Symbol\('(\w+)'[^()]*\)")
_MODEL = re.compile(r"L__self__,,[\w.]*?(\w+)(?:;|$)")
_FRAME = re.compile(r'File "(?P<file>[^"\n]+)", line (?P<line>\d{1,7}), in (?P<function>[^\n]+)\n +(?P<code>[^\n]+)')


def _extent(size: Any, ranges: Any) -> str:
    if "as_int" in size:
        return str(_number(size["as_int"]))
    text = size["as_expr"]["expr_str"]
    symbol = _SYMBOL.fullmatch(text)
    limits = ranges.get(symbol[1] if symbol else text, {})
    low, high = limits.get("min_val"), limits.get("max_val")
    return f"{'' if low is None else _number(low)}..{'' if high is None or high >= 1 << 31 else _number(high)}"


def read_library(path: str, artifact: Artifact) -> None:
    """A shared library of AOTInductor: only its size is known without loading it."""
    artifact.digest, artifact.size = _digest_of(path), os.path.getsize(path)
    artifact.parts.append(Part("library", artifact.size))


def _digest_of(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


# --- fields -------------------------------------------------------------------------------------------------------------


def _blob(state: dict[Any, Any], field: str, artifact: Artifact) -> Any:
    """A pickle that is a field of a state; it becomes a part."""
    data = state.get(field)
    if not isinstance(data, bytes):
        return None
    artifact.parts.append(Part(field, len(data)))
    return _inner(data, field, artifact)


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Record) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value < 1 << 31 else 0
