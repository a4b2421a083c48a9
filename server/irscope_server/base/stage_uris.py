"""The addresses of the read-only documents of stages and kernels: ``irscope:/RUN/STAGE_ID.EXT``.

For VS Code that is the normal form.  Other editors take a name for an address only where it has ``://``, so they get
``irscope:///RUN/STAGE_ID.EXT``, which means the same.
"""

from __future__ import annotations

from urllib.parse import quote, unquote, urlsplit

SCHEME = "irscope"

_EXTENSIONS = {
    "python": ".py",
    "cpp": ".cpp",
    "mlir": ".mlir",
    "llvm": ".ll",
    "ptx": ".ptx",
    "sass": ".sass",
    "asm": ".s",
    "json": ".json",
    "python-bytecode": ".pyc.txt",
    "irscope-guards": ".guards.txt",
}
_OTHER = ".txt"

_root = f"{SCHEME}:/"
"""What addresses begin with: a server has one client."""

_PYTHON = frozenset({"python", "triton", "pallas", "cutedsl", "halide", "multi_kernel"})
"""Languages whose texts are Python."""


class NoDocument(LookupError):
    """There is no such document; the message says which part is unknown."""


def write_empty_authority(wanted: bool) -> None:
    """Whether the addresses of this process have ``://`` from now on."""
    global _root
    _root = f"{SCHEME}:///" if wanted else f"{SCHEME}:/"


def uri_of_stage(run: str, stage: str, language: str) -> str:
    """The address of a stage's document; the extension follows the language."""
    return f"{_root}{quote(run)}/{quote(stage)}{_EXTENSIONS.get(language_id(language), _OTHER)}"


def language_id(language: str) -> str:
    """What editors call the language of a stage."""
    return "python" if language in _PYTHON else language


def parts_of(uri: str) -> tuple[str, tuple[str, ...]]:
    """The run of a document, and the ids that its stage can have, the likeliest first.

    Clients write a URI in their own way (``irscope:///``, other percent-escapes), so only its meaning counts.
    Raises NoDocument.
    """
    parts = urlsplit(uri)
    run, _, rest = unquote(parts.path).lstrip("/").partition("/")
    endings = sorted({*_EXTENSIONS.values(), _OTHER}, key=len, reverse=True)
    stages = tuple(rest[: -len(ending)] for ending in endings if rest.endswith(ending))
    if parts.scheme != SCHEME or not run or not stages:
        raise NoDocument(f"{uri} is not a stage of a run. Choose one with Show Stage….")
    return run, stages
