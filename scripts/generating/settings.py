"""Settings as JSON of the manifest and as Markdown, from the table in `irscope.vocabulary.settings`."""

from __future__ import annotations

import json
import re
from typing import Any

from irscope.vocabulary.limits import LIMITS, Limit
from irscope.vocabulary.setting import Goes, Kind, Setting
from irscope.vocabulary.settings import SETTINGS

_HEAD = (
    "Made by `python scripts/generate.py` from compiler/irscope/vocabulary/settings.py. Names are those of VS Code; other "
    "editors give them without `irscope.` (see [PROTOCOL.md](PROTOCOL.md)). A setting without a scope may differ from "
    "folder to folder."
)
_TEXT_TYPE = {"type": "string"}


def manifest(text: str) -> str:
    """package.json with the settings, and with the limits among the attributes of launch configurations.

    Args:
        text: package.json as it is; the rest of it stays.
    """
    data = json.loads(text)
    contributes = data["contributes"]
    contributes["configuration"]["properties"] = {
        row.name: _property(row, order) for order, row in enumerate(_offered(), start=1)
    }
    data["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"] = [
        row.name for row in _offered() if row.restricted
    ]
    attributes = contributes["debuggers"][0]["configurationAttributes"]["launch"]["properties"]
    for row in LIMITS.values():
        if row.launch:
            attributes[row.launch] = {"type": "number", "minimum": 0, "default": 0, "description": row.launch_help}
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def page() -> str:
    """docs/settings.md."""
    return "\n\n".join(["# Settings", _HEAD, *(_section(row) for row in _offered())]) + "\n"


def protocol_table() -> str:
    """What a client can send and docs/settings.md does not have, for docs/PROTOCOL.md."""
    options = [row for row in SETTINGS.values() if row.goes is Goes.OPTION]
    types = ["object[] or null" if row.kind is Kind.LAUNCH else _types(row) for row in options]
    rows = [
        f"| `{row.key}` | {type_} | `{json.dumps(row.default)}` | {row.short} |"
        for row, type_ in zip(options, types, strict=True)
    ]
    return "\n".join(["| key | type | default | meaning |", "|---|---|---|---|", *rows])


def limit_names() -> str:
    """The limits that an outcome can name, as a list within a sentence."""
    *first, last = (f"`{one.value}`" for one in Limit)
    return f"{', '.join(first)} or {last}"


def _offered() -> list[Setting]:
    return [row for row in SETTINGS.values() if row.offered]


def _property(row: Setting, order: int) -> dict[str, Any]:
    """The setting as JSON schema, with what VS Code adds to that."""
    schema = _schema(row)
    told = {"scope": row.scope, "order": order, "markdownDescription": row.text}
    if "enum" in schema:
        told["markdownEnumDescriptions"] = list(row.choices.values())
    return {**schema, "default": row.default, **({"minimum": 0} if row.kind is Kind.NUMBER else {}), **told}


def _schema(row: Setting) -> dict[str, Any]:
    chosen = {"type": "string", "enum": list(row.choices)}
    schemas: dict[Kind, dict[str, Any]] = {
        Kind.TEXT: _TEXT_TYPE,
        Kind.NUMBER: {"type": ["number", "null"] if row.default is None else "number"},
        Kind.FLAG: {"type": "boolean"},
        Kind.CHOICE: chosen,
        Kind.LANE: chosen,
        Kind.TEXTS: {"type": "array", "items": _TEXT_TYPE},
        Kind.ENTRIES: {"type": ["string", "array"], "items": _TEXT_TYPE},
        Kind.TEXT_MAP: {"type": "object", "additionalProperties": _TEXT_TYPE},
        Kind.VARIABLES: {"type": "object", "additionalProperties": _TEXT_TYPE},
        Kind.CHOICE_MAP: {"type": "object", "additionalProperties": chosen},
    }
    return schemas[row.kind]


def _types(row: Setting) -> str:
    of = _schema(row)["type"]
    return " or ".join(of) if isinstance(of, list) else str(of)


def _section(row: Setting) -> str:
    parts = [
        f"## `{row.name}`",
        ", ".join(
            [_types(row), f"default `{json.dumps(row.default)}`", *([row.scope] if row.scope != "resource" else [])]
        ),
        re.sub(r"`#([\w.]+)#`", r"`\1`", row.text),
    ]
    if row.kind in (Kind.CHOICE, Kind.LANE):
        parts.append("\n".join(f"- `{value}`: {told}" for value, told in row.choices.items()))
    return "\n\n".join(parts)
