"""The tables of docs/json.md, and whether a document has the keys and types that they promise."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs" / "json.md"
_LINK = re.compile(r"\[(\w+)\]\(#\w+\)")
_PLAIN = {"string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,)}


@functools.cache
def documented_tables() -> dict[str, dict[str, tuple[str, str]]]:
    """Class → key → type and meaning, as the documentation has them."""
    tables: dict[str, dict[str, tuple[str, str]]] = {}
    for section in DOCS.read_text(encoding="utf-8").split("\n### ")[1:]:
        title, _, body = section.partition("\n")
        rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+) \|$", body.split("\n## ")[0], re.MULTILINE)
        tables[title] = {key: (type_, meaning) for key, type_, meaning in rows}
    return tables


def not_as_documented(document: Any, type_: str = "[Report](#report)", at: str = "") -> Iterator[str]:
    """Each place of a document whose keys, or whose type, are not those of the documentation."""
    if type_.endswith(" or null"):
        if document is not None:
            yield from not_as_documented(document, type_.removesuffix(" or null"), at)
    elif " or " in type_:
        problems = [list(not_as_documented(document, either, at)) for either in type_.split(" or ")]
        yield from min(problems, key=len)
    elif type_.startswith("array of "):
        if not isinstance(document, list):
            yield f"{at}: {document!r} is not an {type_}"
            return
        item = type_.removeprefix("array of ")
        for one in document:
            yield from not_as_documented(
                one, item.removesuffix("s") if item.removesuffix("s") in _PLAIN else item, f"{at}[]"
            )
    elif link := _LINK.fullmatch(type_):
        yield from _not_its_table(document, link[1], at)
    elif not isinstance(document, _PLAIN[type_]) or (isinstance(document, bool) and type_ != "boolean"):
        yield f"{at}: {document!r} is not a {type_}"


def _not_its_table(document: Any, name: str, at: str) -> Iterator[str]:
    table = documented_tables()[name]
    if not isinstance(document, dict) or list(document) != list(table):
        yield f"{at}: the keys of {name} are others"
        return
    for key, value in document.items():
        yield from not_as_documented(value, table[key][0], f"{at}.{key}")


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
