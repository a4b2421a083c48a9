"""The kinds of compiled artifacts: how each begins, what reads it, and what PyTorch does where it does not match."""

from __future__ import annotations

import os
from collections.abc import Callable

from irscope.ir.artifacts import caches, packages, precompiled, programs, reading, saved_functions
from irscope.ir.artifacts.contents import Artifact, ArtifactError
from irscope.ir.artifacts.vllm_cache import is_vllm_cache, read_vllm_cache
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.suggestions import listed

PROGRAM = "program of torch.export"
_HEAD = 1 << 17
_MOST_OF_PICKLE = 1 << 22
"""Bytes in which the names of a saved function's parts are looked for; a long signature is before them."""


@dataclass(frozen=True)
class Kind:
    """A kind of artifact.

    Args:
        matches: Whether a path with these first bytes is one; a folder has none.
        read: Fills in what is in the one at a path.  Raises ArtifactError.
        on_miss: What PyTorch does where it does not match.
    """

    label: str
    matches: Callable[[str, bytes], bool]
    read: Callable[[str, Artifact], None]
    on_miss: str


def _is_saved_function(path: str, head: bytes) -> bool:
    if not is_pickle(head):
        return False
    with open(path, "rb") as file:
        block = file.read(_MOST_OF_PICKLE)
    return b"guards_state" in block


def is_pickle(head: bytes) -> bool:
    """Whether a file that begins so is a binary pickle."""
    return head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05")


def _is_standalone(_: str, head: bytes) -> bool:
    return head[12:33] == caches.CACHE_HEADER or head[12:31] == caches.AOT_HEADER


def _is_mega_cache(_: str, head: bytes) -> bool:
    return head[4:12] == caches.MEGA_VERSION and 0 < int.from_bytes(head[12:20], "big") < 256


def _is_cache_folder(path: str, _: bytes) -> bool:
    return any(os.path.isdir(os.path.join(path, name)) for name in caches.CACHE_FOLDERS)


def _is_precompiled(_: str, head: bytes) -> bool:
    return head.startswith(precompiled.TEXT_HEADER)


def _is_cache_of_precompiled(_: str, head: bytes) -> bool:
    return _is_zip(head) and precompiled.CACHE_FORMAT in head[:4096] and b"code_hash" in head[:4096]


def _is_package(path: str, head: bytes) -> bool:
    return _is_zip(head) and any("/aotinductor/" in name for name in reading.names_in(path))


def _is_program(path: str, head: bytes) -> bool:
    return _is_zip(head) and any("/models/" in name for name in reading.names_in(path))


def _is_zip(head: bytes) -> bool:
    return head[:4] == b"PK\x03\x04"


def _is_library(path: str, head: bytes) -> bool:
    return head[:4] == b"\x7fELF" and reading.has_bytes(path, b"AOTInductorModelContainerCreate")


KINDS = (
    Kind(
        "function saved by aot_compile", _is_saved_function, saved_functions.read_saved_function,
        "Loading it under another Python or PyTorch raises. A guard that fails raises RuntimeError at the call. By default "
        "no guard checks globals, and nothing checks the source: the artifact then computes what it was made for.",
    ),
    Kind(
        "CompiledArtifact of standalone_compile", _is_standalone, caches.read_standalone,
        "Loading it under another PyTorch raises AssertionError. It has no guards for its inputs.",
    ),
    Kind(
        "Mega-Cache (save_cache_artifacts)", _is_mega_cache, caches.read_mega_cache,
        "A graph whose key differs is compiled again. Nothing is raised or printed.",
    ),
    Kind(
        "vLLM's cache of compiled models", is_vllm_cache, read_vllm_cache,
        "vLLM compiles the model again into the folder of another key. Nothing is raised.",
    ),
    Kind(
        "folder of compile caches", _is_cache_folder, caches.read_folder,
        "A graph or a kernel whose key differs is compiled again. Nothing is raised or printed.",
    ),
    Kind(
        "AOTInductor package", _is_package, packages.read_package,
        "It has no guards. Inputs are checked only with AOTI_RUNTIME_CHECK_INPUTS=1.",
    ),
    Kind(
        "AOTInductor library", _is_library, packages.read_library,
        "It has no guards. Inputs are checked only with AOTI_RUNTIME_CHECK_INPUTS=1.",
    ),
    Kind(
        "function of torch.compiler.precompile", _is_precompiled, precompiled.read_text,
        "An input or a weight with another size, dtype, device or layout raises PrecompileError at the call. Control flow is "
        "what it was for the example. Without a cache that fits, each process compiles its kernels again.",
    ),
    Kind(
        "cache of torch.compiler.precompile", _is_cache_of_precompiled, precompiled.read_cache,
        "With another source text loading it raises PrecompileError. Under another PyTorch its kernels are compiled again, "
        "and nothing is raised.",
    ),
    Kind(
        PROGRAM, _is_program, programs.read_program,
        "Inputs that do not meet its constraints raise. It has no compiled kernels: compiling it is not saved.",
    ),
)  # fmt: skip


def kind_of(path: str) -> Kind | None:
    """The kind of what is at a path; None if it is not an artifact.

    Raises:
        ArtifactError: It is a pickle or an archive that none of the kinds is, which nothing else here opens.
        OSError: It cannot be read.
    """
    head = b""
    if os.path.isfile(path):
        with open(path, "rb") as file:
            head = file.read(_HEAD)
    found = next((kind for kind in KINDS if kind.matches(path, head)), None)
    if found is None and (is_pickle(head) or _is_zip(head)):
        what = "pickle" if is_pickle(head) else "ZIP archive"
        kinds = listed([kind.label for kind in KINDS])
        raise ArtifactError(
            f"{path} is a {what}, but not an artifact that irscope reads ({kinds}). It was not unpickled."
        )
    return found


def open_artifact(path: str, kind: Kind) -> Artifact:
    """Reads an artifact; nothing is unpickled or executed.  Raises ArtifactError and OSError."""
    artifact = Artifact(path, kind.label, kind.on_miss)
    try:
        kind.read(path, artifact)
    except ArtifactError as error:
        raise ArtifactError(
            f"{path} ({kind.label}) cannot be read: {error}. Make it again, or copy it again if it came from elsewhere."
        ) from error
    return artifact
