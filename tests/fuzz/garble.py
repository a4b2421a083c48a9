"""Makes messages: valid ones from their types or their schema, and from these ones that no well-behaved sender sends."""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import re
import types
import typing
from collections.abc import Callable
from random import Random
from typing import Any

import attrs

_DEEPEST = 6
_TEXTS = (
    "", "x", "0", "-1", "def f(x):\n    return x\n", "irscope", "0/0", "../../etc/passwd", "/", "%00", "\0", "\u2028", "\U0001f600",
    "a" * 5000, "[" * 3000, "<script>alert(1)</script>", "{0.__class__}", "%s%n", "\ud800", "a\udfffb", "NaN", "1e999", "\r\n\r\n", "(" * 400,
)  # fmt: skip
_NUMBERS = (
    0,
    1,
    2,
    3,
    5,
    17,
    -1,
    2**31 - 1,
    2**31,
    2**53,
    2**63,
    -(2**63),
    10**30,
    1.5,
    -0.0,
    1e308,
    float("inf"),
    float("nan"),
)
_KNOWN_PER_NAME = 300


class Garbler:
    """Draws values.

    ``known`` holds values that mean something to who is written to, by the name of the field that takes them: with nothing
    but random texts a message would be refused at the door.
    """

    def __init__(self, random: Random, known: dict[str, list[Any]]) -> None:
        self.random, self.known = random, known

    def learn(self, answer: Any, names: dict[str, str]) -> None:
        """Keeps what stands in an answer for later messages; ``names``: in which fields the values of a field can stand."""
        if isinstance(answer, dict):
            for key, value in answer.items():
                if key in names and isinstance(value, (str, int)):
                    values = self.known.setdefault(names[key], [])
                    if len(values) < _KNOWN_PER_NAME:
                        values.append(value)
                    else:
                        values[self.random.randrange(_KNOWN_PER_NAME)] = value
                self.learn(value, names)
        elif isinstance(answer, list):
            for value in answer[:50]:
                self.learn(value, names)

    # --- valid ones ---------------------------------------------------------------------------------------------------

    def of_type(self, hint: Any, name: str = "", depth: int = 0) -> Any:
        """A JSON value for a type: a dataclass, a class of lsprotocol's, or what such a class has fields of."""
        if name in self.known and self.random.random() < 0.9:
            return self.random.choice(self.known[name])
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if origin in (typing.Union, types.UnionType):
            return self.of_type(self.random.choice(arguments), name, depth)
        if origin is typing.Literal:
            return self.random.choice(arguments)
        if origin in (list, tuple, collections.abc.Sequence):
            return [] if depth > _DEEPEST else [self.of_type(arguments[0], name, depth + 1) for _ in range(self._few())]
        if origin in (dict, collections.abc.Mapping):
            return {self._text(): self.of_type(arguments[1], name, depth + 1) for _ in range(self._few())}
        if isinstance(hint, type) and (attrs.has(hint) or dataclasses.is_dataclass(hint)):
            return self._of_fields(hint, depth)
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            return self.random.choice([member.value for member in hint])
        plain: dict[Any, Callable[[], Any]] = {
            str: self._text,
            bool: lambda: self.random.random() < 0.5,
            int: self._number,
            float: self._number,
            type(None): lambda: None,
        }
        return plain[hint]() if hint in plain else self.anything(depth)

    def _of_fields(self, cls: type, depth: int) -> dict[str, Any]:
        hints = typing.get_type_hints(cls)
        is_lsp = attrs.has(cls)
        fields: Any = attrs.fields(cls) if is_lsp else dataclasses.fields(cls)
        made = {}
        for field in fields:
            optional = type(None) in typing.get_args(hints[field.name])
            if optional and (depth > _DEEPEST or self.random.random() < 0.5):
                continue
            key = re.sub(r"_(\w)", lambda match: match[1].upper(), field.name.rstrip("_")) if is_lsp else field.name
            made[key] = self.of_type(hints[field.name], key, depth + 1)
        return made

    def of_schema(self, schema: dict[str, Any], definitions: dict[str, Any], name: str = "", depth: int = 0) -> Any:
        """A JSON value for a JSON schema of draft 4, as that of the Debug Adapter Protocol."""
        if name in self.known and self.random.random() < 0.9:
            return self.random.choice(self.known[name])
        if "$ref" in schema:
            return self.of_schema(definitions[schema["$ref"].rpartition("/")[2]], definitions, name, depth)
        if "allOf" in schema:
            parts = [self.of_schema(part, definitions, name, depth) for part in schema["allOf"]]
            return {key: value for part in parts if isinstance(part, dict) for key, value in part.items()}
        if "enum" in schema or "_enum" in schema:
            return self.random.choice(schema.get("enum") or schema["_enum"])
        kind = schema.get("type", "any")
        kind = self.random.choice(kind) if isinstance(kind, list) else kind
        if kind == "object":
            required = schema.get("required", [])
            return {
                key: self.of_schema(inner, definitions, key, depth + 1)
                for key, inner in schema.get("properties", {}).items()
                if key in required or (depth < _DEEPEST and self.random.random() < 0.5)
            }
        if kind == "array":
            return [self.of_schema(schema.get("items", {}), definitions, name, depth + 1) for _ in range(self._few())]
        plain: dict[str, Callable[[], Any]] = {
            "string": self._text,
            "boolean": lambda: self.random.random() < 0.5,
            "integer": self._number,
            "number": self._number,
            "null": lambda: None,
        }
        return plain[kind]() if kind in plain else self.anything(depth)

    # --- others -------------------------------------------------------------------------------------------------------

    def anything(self, depth: int = 0) -> Any:
        """Some JSON value."""
        choice = self.random.randrange(8 if depth < _DEEPEST else 5)
        if choice == 0:
            return None
        if choice == 1:
            return self.random.random() < 0.5
        if choice == 2:
            return self._number()
        if choice in (3, 4):
            return self._text()
        if choice in (5, 6):
            return [self.anything(depth + 1) for _ in range(self._few())]
        return {self._text(): self.anything(depth + 1) for _ in range(self._few())}

    def spoiled(self, value: Any, share: float = 0.1) -> Any:
        """The same with some parts gone, doubled, or in place of others."""
        if self.random.random() < share:
            return self.anything() if self.random.random() < 0.8 else [value] * 200
        if isinstance(value, dict):
            kept = {key: self.spoiled(item, share) for key, item in value.items() if self.random.random() > share / 2}
            return {**kept, self._text(): self.anything()} if self.random.random() < share / 2 else kept
        if isinstance(value, list):
            return [
                self.spoiled(item, share) for item in value for _ in range(2 if self.random.random() < share / 2 else 1)
            ]
        if isinstance(value, str) and self.random.random() < share / 2:
            return f"{value}\ud800"
        return value

    def scratched(self, data: bytes) -> bytes:
        """Bytes with some of them changed, gone, or there twice."""
        made = bytearray(data)
        for _ in range(self.random.choice((1, 1, 3, 20))):
            at = self.random.randrange(len(made) + 1)
            length = self.random.choice((1, 1, 4, 100))
            choice = self.random.randrange(4)
            if choice == 0:
                made[at : at + length] = self.random.randbytes(length)
            elif choice == 1:
                del made[at : at + length]
            elif choice == 2:
                made[at:at] = made[at : at + length]
            elif at < len(made):
                made[at] ^= 1 << self.random.randrange(8)
        return bytes(made)

    def _few(self) -> int:
        return self.random.choice((0, 1, 1, 2, 3))

    def _text(self) -> str:
        return self.random.choice(_TEXTS)

    def _number(self) -> float:
        return self.random.choice(_NUMBERS[:6] if self.random.random() < 0.6 else _NUMBERS)
