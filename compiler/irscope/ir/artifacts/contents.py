"""What is in an artifact, as plain data."""

from __future__ import annotations

from dataclasses import field

from irscope.vocabulary.records import dataclass


@dataclass(frozen=True)
class Keyed:
    """What a part of a model (by rank and name) was compiled under in vLLM's cache: the folder of the key, when in seconds,
    and what the key is the digest of, by name (``config.model_config.dtype``)."""

    key: str
    part: str
    time: float
    factors: dict[str, str]


class ArtifactError(Exception):
    """An artifact cannot be read; the message says why."""


@dataclass(frozen=True)
class Part:
    """A part of an artifact: what it is, and its bytes."""

    name: str
    size: int


@dataclass(frozen=True)
class Source:
    """Source text of a function in an artifact.

    Args:
        module, file: Where it was; the file is empty if it is not known.
        first, end: Its lines in ``text``, from 1; ``end`` is excluded.
        text: All of the module as it was.
    """

    module: str
    file: str
    first: int
    end: int
    text: str


@dataclass(frozen=True)
class Guard:
    """A guard: its kind, what it reads (``L['x']``), its code, and the user's line that it came from (0: not known)."""

    kind: str
    source: str
    code: tuple[str, ...]
    file: str
    line: int


@dataclass
class Artifact:
    """What an artifact has.

    Args:
        functions: ``(name, file, line)`` of what was compiled.
        made_for: Versions, devices and CPU features, by their names.
        graphs, kernels: Their texts, by title.
        inputs: ``dtype``, ``shape``, ``stride`` and ``device`` of each tensor that the function got, as cache keys
            print them; by the user's name, in the order of the graph's inputs. A size that may vary is ``2..64``
            (``2..`` has no end).
        constraints: What the sizes of a program must meet, as PyTorch writes it; it is checked at each call.
        weights: The same of each parameter and buffer that it has, by its name in the model.
        keys: The parts of each key of the FX graph cache: ``[digest] name: value``.
        lowered: The post-grad graph of each entry, by its key in the FX graph cache; of a saved function, by its title.
        keyed, newest: What vLLM computed its keys from, the oldest first, and the newest key that was opened.
        compiled: For each entry the texts of its stages in their order: the event of PyTorch's structured trace that
            has the same text, and the text.
        code: ``(file, line, function, code)`` of the user's lines that the nodes of a program came from.
    """

    path: str
    kind: str
    on_miss: str
    digest: str = ""
    size: int = 0
    parts: list[Part] = field(default_factory=list)
    functions: list[tuple[str, str, int]] = field(default_factory=list)
    made_for: dict[str, str] = field(default_factory=dict)
    graphs: dict[str, str] = field(default_factory=dict)
    kernels: dict[str, str] = field(default_factory=dict)
    guards: list[Guard] = field(default_factory=list)
    constraints: list[str] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    inputs: dict[str, dict[str, str]] = field(default_factory=dict)
    weights: dict[str, dict[str, str]] = field(default_factory=dict)
    keys: dict[str, list[str]] = field(default_factory=dict)
    lowered: dict[str, str] = field(default_factory=dict)
    keyed: list[Keyed] = field(default_factory=list)
    newest: str = ""
    compiled: list[list[tuple[str, str]]] = field(default_factory=list)
    code: list[tuple[str, int, str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
