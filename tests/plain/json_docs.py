"""The types of docs/json.md, and whether a document has the keys and types that they promise."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs" / "json.md"
_PLAIN = {"string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,)}


@functools.cache
def documented_types() -> dict[str, dict[str, tuple[str, str]]]:
    """Class → key → type and comment, as the documentation has them; a line of a comment alone goes on with the last one."""
    text = re.sub(r"\n +// ", " ", DOCS.read_text(encoding="utf-8"))
    types: dict[str, dict[str, tuple[str, str]]] = {}
    for name, body in re.findall(r"^interface (\w+) \{(.*?)\}$", text, re.MULTILINE | re.DOTALL):
        keys = types[name] = {}
        for line in body.splitlines():
            declared, _, comment = line.partition("// ")
            keys |= {key: (type_, comment) for key, type_ in re.findall(r"(\w+): ([^;]+);", declared)}
    return types


def not_as_documented(document: Any, type_: str = "Report", at: str = "") -> Iterator[str]:
    """Each place of a document whose keys, or whose type, are not those of the documentation."""
    if " | " in type_:
        problems = [list(not_as_documented(document, either, at)) for either in type_.split(" | ")]
        yield from min(problems, key=len)
    elif type_.endswith("?"):
        if document is not None:
            yield from not_as_documented(document, type_.removesuffix("?"), at)
    elif type_.endswith("[]"):
        if not isinstance(document, list):
            yield f"{at}: {document!r} is not a {type_}"
            return
        for item in document:
            yield from not_as_documented(item, type_.removesuffix("[]"), f"{at}[]")
    elif type_ not in _PLAIN:
        yield from _not_its_type(document, type_, at)
    elif not isinstance(document, _PLAIN[type_]) or (isinstance(document, bool) and type_ != "boolean"):
        yield f"{at}: {document!r} is not a {type_}"


def _not_its_type(document: Any, name: str, at: str) -> Iterator[str]:
    keys = documented_types()[name]
    if not isinstance(document, dict) or list(document) != list(keys):
        yield f"{at}: the keys of {name} are others"
        return
    for key, value in document.items():
        yield from not_as_documented(value, keys[key][0], f"{at}.{key}")


def places_of(document: Any, at: str = "") -> Iterator[tuple[str, str]]:
    """Each place that a document fills, with the type of JSON there; items of a list share one place."""
    if isinstance(document, dict):
        for key, value in document.items():
            yield from places_of(value, f"{at}.{key}")
    elif isinstance(document, list):
        yield at, "array"
        for value in document:
            yield from places_of(value, f"{at}[]")
    else:
        kind = {str: "string", bool: "boolean", int: "number", float: "number", type(None): "null"}[type(document)]
        yield at, kind
