"""vLLM's cache of compiled models: a folder for each key, with the factors of the key in it.

The layout is from vLLM's published source: ``KEY/rank_R_D/PREFIX/cache_key_factors.json`` has what the key is the digest of
(``env``, ``config``, ``compiler``, ``code``) or, before all of it was written, the digests of these four.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import stat
from collections.abc import Iterator
from typing import Any

from irscope.ir.artifacts.contents import Artifact, Keyed, Part
from irscope.vocabulary.units import count

_FACTORS, _GRAPH = "cache_key_factors.json", "computation_graph.py"
_RANK = re.compile(r"rank_\d+_\d+")
_MOST_FOLDERS, _MOST_BYTES, _MOST_FACTORS, _DEEPEST = 500, 8 << 20, 20_000, 8
_LONGEST = 200


def is_vllm_cache(path: str, _: bytes) -> bool:
    """Whether a folder is vLLM's cache, or that of one key."""
    return os.path.isdir(path) and next(_factor_files(path), None) is not None


def read_vllm_cache(path: str, artifact: Artifact) -> None:
    """Reads the factors of the keys. The folder of one key is compared with the folders beside it, which are read, too."""
    path = os.path.abspath(path)
    is_one = any(_RANK.fullmatch(name) for name in os.listdir(path))
    found: list[Keyed] = []
    for file in _factor_files(os.path.dirname(path) if is_one else path):
        keyed = _read(file)
        if keyed is None:
            artifact.problems.append(f"{file} is not JSON, or too large")
            continue
        found.append(keyed)
        if file.startswith(path + os.sep):
            _take(os.path.dirname(file), keyed, artifact)
    artifact.keyed = sorted(found, key=lambda one: one.time)
    keys = [one.key for one in artifact.keyed]
    artifact.newest = os.path.basename(path) if is_one else keys[-1] if keys else ""
    facts = [[one.key, one.factors] for one in artifact.keyed]
    artifact.digest = hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _factor_files(path: str) -> Iterator[str]:
    """The files with factors below a folder: in it (``rank_0_0/backbone``), or in the folders of keys in it."""
    for folder, names, files in itertools.islice(os.walk(path), _MOST_FOLDERS):
        names.sort()
        if os.path.relpath(folder, path).count(os.sep) >= 2:
            names.clear()
        rank = os.path.basename(os.path.dirname(folder))
        is_file = _FACTORS in files and stat.S_ISREG(os.lstat(os.path.join(folder, _FACTORS)).st_mode)
        if is_file and (_RANK.fullmatch(rank) or _RANK.fullmatch(os.path.basename(folder))):
            yield os.path.join(folder, _FACTORS)


def _read(file: str) -> Keyed | None:
    try:
        with open(file, encoding="utf-8", errors="replace") as stream:
            facts = json.loads(stream.read(_MOST_BYTES))
        factors = dict(_flat(facts, "", 0))
    except (OSError, ValueError, RecursionError):
        return None
    names = os.path.dirname(file).split(os.sep)
    rank = next(number for number in range(len(names) - 1, -1, -1) if _RANK.fullmatch(names[number]))
    return Keyed(names[rank - 1], "/".join(names[rank:]), os.path.getmtime(file), factors)


def _flat(value: Any, name: str, depth: int) -> Iterator[tuple[str, str]]:
    """What is in a JSON value, each by its way: ``config.model_config.dtype``; an item of a list that has a name, by that."""
    if isinstance(value, dict) and depth < _DEEPEST:
        for key in list(value)[:_MOST_FACTORS]:
            yield from _flat(value[key], f"{name}.{key}" if name else str(key), depth + 1)
    elif isinstance(value, list) and depth < _DEEPEST:
        for number, item in enumerate(value[:_MOST_FACTORS]):
            own = item.get("path") if isinstance(item, dict) else item[0] if isinstance(item, list) and item else None
            yield from _flat(item, f"{name}[{own if isinstance(own, str) else number}]", depth + 1)
    else:
        text = json.dumps(value, sort_keys=True)
        digest = f"… ({hashlib.sha256(text.encode()).hexdigest()[:8]})" if len(text) > _LONGEST else ""
        yield name, f"{text[:_LONGEST]}{digest}"


def _take(folder: str, keyed: Keyed, artifact: Artifact) -> None:
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name)[:_MOST_FOLDERS]:
        if entry.is_file(follow_symlinks=False):
            artifact.parts.append(Part(f"{keyed.key}/{keyed.part}/{entry.name}", entry.stat().st_size))
            artifact.size += entry.stat().st_size
            if entry.name == _GRAPH and entry.stat().st_size < _MOST_BYTES:
                with open(entry.path, encoding="utf-8", errors="replace") as stream:
                    artifact.graphs[f"{keyed.key}/{keyed.part} graph before it is split"] = stream.read()


def key_changes(artifact: Artifact, compared: list[str]) -> Iterator[tuple[str, str]]:
    """What differs between the newest key and the nearest of those before it, each once, with the file that has changed."""
    told: dict[str, str] = {}
    for one in (keyed for keyed in artifact.keyed if keyed.key == artifact.newest):
        others = [other for other in artifact.keyed if other.part == one.part and other.key != one.key]
        others = [other for other in others if other.time <= one.time] or others
        if not others:
            continue
        other = min(others, key=lambda other: len(_changed(other, one)))
        keys = count(len(others), "other key")
        compared.append(f"the key {one.key} ({one.part}) with {keys}; {other.key} is the nearest")
        names = _changed(other, one)
        for name in names:
            stem = name.removesuffix("_hash")
            if stem != name and any(part.startswith((f"{stem}.", f"{stem}[")) for part in names):
                continue  # what it is the digest of is told
            was, now = (keyed.factors.get(name, "not set") for keyed in (other, one))
            file = name.partition("[")[2].partition("]")[0]
            what = f"`{name}` was {was} in the key {other.key} and is {now} in {one.key}."
            told.setdefault(what, file if os.path.isfile(file) else "")
    yield from told.items()


def _changed(before: Keyed, now: Keyed) -> list[str]:
    both = {**before.factors, **now.factors}
    return [name for name in both if before.factors.get(name) != now.factors.get(name)]
