"""What a setting is; the settings themselves are in settings.py and limits.py."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from irscope.vocabulary.records import dataclass

SECTION = "irscope"
"""What the keys of all settings begin with in VS Code, and the section that the server asks clients for."""


class Kind(enum.Enum):
    """The values that a setting takes."""

    TEXT = "a string"
    NUMBER = "a number, 0 or more; None if nothing is set and the default is None"
    FLAG = "true or false"
    CHOICE = "one of the setting's choices"
    LANE = "a lane, or off"
    TEXTS = "a list of strings"
    ENTRIES = "one string, or a list of strings"
    TEXT_MAP = "an object of strings"
    VARIABLES = "an object of environment variables; a number is taken as text, null as not set"
    CHOICE_MAP = "an object whose values are among the setting's choices"
    LAUNCH = "an array of launch configurations"


class Goes(enum.Enum):
    """Who reads a setting."""

    SERVER = "server"
    """The language server. VS Code offers it, and other clients send it."""
    OPTION = "option"
    """The language server, from the initialization options of a client. VS Code offers no setting for it."""
    CLIENT = "client"
    """The extension only. The protocol names it, since the server accepts it."""
    EDITOR = "editor"
    """A library of the extension only. It never reaches the server."""


@dataclass(frozen=True)
class Setting:
    """A row of the table of settings.

    Args:
        key: Its name without ``irscope.``.
        kind: The values that it takes.
        default: The value if nothing is set, as JSON.
        short: What it means, in a line of docs/PROTOCOL.md.
        text: What it means to a user of VS Code, in Markdown; also in docs/settings.md.
        unit: The unit of a number: ``seconds``.
        scope: VS Code's scope: ``resource`` settings may differ between folders.
        choices: What each value means, by value.
        goes: Who reads it.
        flag: The command-line flag of ``irscope run`` that means the same, if there is one.
        lanes: The lanes that it applies to; of limits only.
        restricted: Whether it chooses what is run, or where: an untrusted workspace cannot set it.
    """

    key: str
    kind: Kind
    default: Any
    short: str
    text: str = ""
    unit: str = ""
    scope: str = "resource"
    choices: Mapping[str, str] = field(default_factory=dict)
    goes: Goes = Goes.SERVER
    flag: str = ""
    lanes: tuple[str, ...] = ()
    restricted: bool = False

    @property
    def name(self) -> str:
        """Its full name in VS Code."""
        return f"{SECTION}.{self.key}"

    @property
    def offered(self) -> bool:
        """Whether VS Code's settings have it."""
        return self.goes is not Goes.OPTION


def declared(row: object, default: Any) -> Any:
    """A field of a dataclass that declares a row of the table; see `row_of`."""
    if isinstance(default, (dict, list)):
        return field(default_factory=type(default), metadata={"row": row})
    return field(default=default, metadata={"row": row})


def row_of(one: dataclasses.Field[Any]) -> Any:
    """The row that the field declares; None if it declares none."""
    return one.metadata.get("row")
