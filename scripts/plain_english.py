"""Finds phrases that read like a literal translation, in docs, docstrings, comments and texts that users see.

Run by ``npm run check``.  A phrase is in `PHRASES` only if it is nearly always wrong; each names the places where it is
looked for.  A sentence in which a phrase is right goes into `ALLOWED`, with the reason.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

DOCS = "docs"
"""Markdown: README, SECURITY, CONTRIBUTING, docs and the texts of the walkthrough."""
DOCSTRINGS = "docstrings"
"""Docstrings and comments of compiler and server."""
STRINGS = "strings"
"""String constants of compiler and server, and string literals of the extension."""


@dataclass(frozen=True)
class Phrase:
    """A phrase to avoid."""

    pattern: str
    """A regular expression; case is ignored."""
    advice: str
    """What to write."""
    scopes: frozenset[str]
    """Where it is looked for."""


def _phrase(pattern: str, advice: str, *scopes: str) -> Phrase:
    return Phrase(pattern, advice, frozenset(scopes))


EVERYWHERE = (DOCS, DOCSTRINGS, STRINGS)
WRITTEN = (DOCS, DOCSTRINGS)

PHRASES = (
    _phrase(r"\banew\b", "again", *EVERYWHERE),
    _phrase(r"\bas it stands\b|\bwhere it stands\b", "as it is, location", *EVERYWHERE),
    _phrase(r"\bof one's own\b", "its own, separate", *EVERYWHERE),
    _phrase(r"\bthereof\b", "of it", *EVERYWHERE),
    _phrase(r"\bhow it begins\b", "prefix", *EVERYWHERE),
    _phrase(r"\bis known of\b", "is known about", DOCS),
    _phrase(r"\bmends?\b", "fix", DOCS),
    _phrase(r"\bstands?\b(?!-| (for|in for|out|alone)\b)", "is, are", *WRITTEN),
    _phrase(r"\b(tells?|told) of\b", "describes, names, reports", *WRITTEN),
    _phrase(r"(?<!there )\bis no (?!longer|more|such|need|way|one\b)\w+", "is not a …", *WRITTEN),
    _phrase(r"[;,(] ?nothing: ", "None: …", *WRITTEN),
    _phrase(r"\ban? [\w-]+ of (its|their) own\b", "its own …, a separate …", *WRITTEN),
    _phrase(r"\bbehind (its last|the call|a break|each|those)\b", "after", *WRITTEN),
)

ALLOWED: dict[str, str] = {}
"""Part of a sentence in which a phrase is right, and the reason."""


@dataclass(frozen=True)
class Piece:
    """A text and where it is."""

    file: Path
    line: int
    text: str
    scope: str


def docs() -> Iterator[Piece]:
    """The prose of the Markdown files, line by line, without code blocks."""
    files = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("extension/media/*.md")]
    for file in sorted(files):
        in_code = False
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if line.lstrip().startswith("```"):
                in_code = not in_code
            elif not in_code:
                yield Piece(file, number, line, DOCS)


def python_texts() -> Iterator[Piece]:
    """Docstrings, comments and string constants of compiler and server."""
    for file in sorted([*ROOT.glob("compiler/**/*.py"), *ROOT.glob("server/**/*.py")]):
        source = file.read_text(encoding="utf-8")
        tree = ast.parse(source)
        bodies = [body for node in ast.walk(tree) if isinstance(body := getattr(node, "body", None), list)]
        described = {
            id(part.value)
            for body in bodies
            for part in body
            if isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                scope = DOCSTRINGS if id(node) in described else STRINGS
                for offset, line in enumerate(node.value.splitlines()):
                    yield Piece(file, node.lineno + offset, line, scope)
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                yield Piece(file, token.start[0], token.string, DOCSTRINGS)


_LITERAL = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|`(?:[^`\\]|\\.)*`")
"""A string of TypeScript.  Single quotes are left out: prettier writes double ones."""


def extension_texts() -> Iterator[Piece]:
    """String literals of the extension, by a simple scan that does not know comments."""
    for file in sorted(ROOT.glob("extension/src/**/*.ts")):
        source = file.read_text(encoding="utf-8")
        for found in _LITERAL.finditer(source):
            yield Piece(file, source.count("\n", 0, found.start()) + 1, found.group(), STRINGS)


def complaints(pieces: Iterator[Piece]) -> Iterator[str]:
    """A line for each phrase in the pieces, with the advice."""
    patterns = [(re.compile(phrase.pattern, re.IGNORECASE), phrase) for phrase in PHRASES]
    for piece in pieces:
        for pattern, phrase in patterns:
            found = pattern.search(piece.text) if piece.scope in phrase.scopes else None
            if found is not None and not any(part in piece.text for part in ALLOWED):
                place = f"{piece.file.relative_to(ROOT)}:{piece.line}"
                yield f"{place}: {found.group()!r} ({piece.scope}); write: {phrase.advice}"


def main() -> int:
    """Prints what is found; 1 if there is anything."""
    found = [line for pieces in (docs(), python_texts(), extension_texts()) for line in complaints(pieces)]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
