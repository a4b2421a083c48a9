"""Names and texts of scripts, traces and stores, made fit to be shown: nothing in them moves or hides what is around."""

from __future__ import annotations

import re

UNSEEN = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
"""The inside of a character class: control characters but tab and new line; marks, overrides and isolates of
direction; what takes no room.  Joiners (U+200C, U+200D) are not in it: languages and emoji need them."""

_UNSEEN = re.compile(f"[{UNSEEN}]")
_UNPRINTABLE = re.compile(f"[{UNSEEN}\n]")


def without_links(text: str) -> str:
    """The text for a place where an editor makes links, also to commands, of ``[text](target)``."""
    return visible(text).replace("](", "] (")


def visible(text: str) -> str:
    """The text with characters such as ``\\u202e`` written out."""
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


LONGEST_TEXT = 20_000
"""Characters of a message; the text of an exception may be a whole tensor."""


def bounded(text: str, longest: int = LONGEST_TEXT) -> str:
    """The text, cut where it is longer than anybody reads, with how long it was; bytes of a file's name that are no
    characters, which no store takes, are written out."""
    text = text if len(text) <= longest else f"{text[:longest]}… ({len(text)} characters)"
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def printable(text: str) -> str:
    """Without control characters and those that turn the direction: what a script named must not steer the terminal."""
    return _UNPRINTABLE.sub("�", text)
