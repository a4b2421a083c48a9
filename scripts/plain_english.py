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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

DOCS = "docs"
"""Markdown: README, SECURITY, CONTRIBUTING, docs and the texts of the walkthrough."""
DOCSTRINGS = "docstrings"
"""Docstrings and comments of compiler, server, scripts and extension."""
STRINGS = "strings"
"""String constants of compiler, server and scripts, string literals of the extension, and the manifest."""


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
_THINGS = "backend|compile|file|folder|frame|input|kernel|pipeline|run|stage|target|thread|tier"

PHRASES = (
    _phrase(r"\banew\b", "again", *EVERYWHERE),
    _phrase(r"\bas it stands\b|\bwhere it stands\b", "as it is, location", *EVERYWHERE),
    _phrase(r"\bof one's own\b", "its own, separate", *EVERYWHERE),
    _phrase(r"\bthereof\b", "of it", *EVERYWHERE),
    _phrase(r"\bhow it begins\b", "prefix", *EVERYWHERE),
    _phrase(r"\bis known of\b", "is known about", *EVERYWHERE),
    _phrase(r"\bmends?\b", "fix", *EVERYWHERE),
    _phrase(r"\bstands?\b(?!-| (for|in for|out|alone)\b)", "is, are", *EVERYWHERE),
    _phrase(r"\b(tells?|told) of\b", "describes, names, reports", *EVERYWHERE),
    _phrase(r"(?<!there\s)\bis no (?!longer|more|such|need|way|one\b)\w+", "is not a …", *EVERYWHERE),
    _phrase(r"[;,(]\s?nothing: ", "None: …", *WRITTEN),
    _phrase(r"\ban? [\w-]+ of (its|their) own\b", "its own …, a separate …", *EVERYWHERE),
    _phrase(r"\bbehind (its last|the call|a break|each|those)\b", "after", *EVERYWHERE),
    _phrase(r"\b(somebody|whoever)\b", "the user, the client, the process that …", *EVERYWHERE),
    _phrase(r"(?<!does\s)\bnothing where\b", "None if …", *EVERYWHERE),
    _phrase(r"\b(empty|None) where\b", "empty if …, None if …", *EVERYWHERE),
    _phrase(r"\bwhere there (is|are) none\b", "if there is none, if missing", *EVERYWHERE),
    _phrase(r"\bRaises [A-Z]\w+ where\b", "Raises … if …", *WRITTEN),
    _phrase(r"\bback ends?\b", "backend", *EVERYWHERE),
    _phrase(rf"\bThere is no ({_THINGS})\b(?! (yet|to)\b)", "Unknown …: X, … not found: X", STRINGS),
    _phrase(r"\buntil then is kept\b|\bnothing of it\b|\bwhile it goes on\b", "say it with a subject", *EVERYWHERE),
    _phrase(r"\b(that|which) is none\b", "that is not a …", *EVERYWHERE),
    _phrase(r"\bLeft out: ", "Default: …", STRINGS),
)

ALLOWED: dict[str, str] = {}
"""Part of a sentence in which a phrase is right, and the reason."""

_BEGIN = r"(?:\A\W*|[.:;]\s)"
_END = r"(?=[.;,)]|\W*\Z)"
UNSAID = {
    "begins with Of": r"(?<![\w`'\"=|,;:]\s)(?<![\w-])Of (?!course\b|\d)",
    "from here on": r"\b[Ff]rom here on\b|\bAs far as\b",
    "that which": r"(?<!except\s)\b(?:that|those) which\b|\bof that of\b",
    "as that of": r"\bAs (?:that|those) (?:of|that)\b|\bAs of `",
    "ends in a preposition": (
        rf"\b(?:is|are|was|were) (?:a part of|part of|made of|drawn over|drawn in|of){_END}"
        r"|\b(?:that|which|what) (?:\w+ ){1,4}(?:is|are|was|were) (?:by|from)(?=[.;]|\W*\Z)"
    ),
    "are others": (
        r"\b(?:are|were) others\b(?! that| who| in )|\bis another one\b"
        rf"|\b(?:that|which|what) (?:is|are|was) (?:none|not one|no such|one){_END}"
    ),
    "the like": r"\b(?:the|their|its) like\b(?! (?:a|the)\b)",
    "nothing if": (
        r"(?<![Dd]o\s)(?<!oes\s)(?<!osts\s)(?<!says\s)(?<!know\s)(?<!prints\s)\b[Nn]othing (?:if|where)\b"
        r"|\bnothing of (?:the|what|this|it)\b"
    ),
    "a value where": r"(?:\b(?:None|[Ee]mpty|0|null|undefined|[Ff]alse|[Tt]rue)|-1) where\b",
    "so many": r"(?<![\w,`:;]\s)\bSo (?:many|much)\b",
    "begins with Those": rf"{_BEGIN}Those (?:of|that|which|with|in)\b",
    "begins with That": rf"{_BEGIN}That (?:of|there|nobody|only|decide)\b|\A\W*That (?:may|have|can)\b",
    "failing that": r"\b[Ff]ailing (?:that|these|those)\b",
    "what is not": r"\b(?:of|for|with|by|from|to|in|at|without) what (?:is|are) (?:not|no|none)\b",
    "of several": r"\bof (?:very )?(?:many|several)\b[^.;]{0,20}\b(?:the first|that of)\b",
}
"""Kinds of sentences that a person would not say aloud: a name, and a regular expression in which case matters."""


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
    """Docstrings, comments and string constants of compiler, server and scripts."""
    files = [file for folder in ("compiler", "server", "scripts") for file in ROOT.glob(f"{folder}/**/*.py")]
    for file in sorted(file for file in files if file != Path(__file__).resolve()):
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
                yield Piece(file, node.lineno, node.value, DOCSTRINGS if id(node) in described else STRINGS)
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                yield Piece(file, token.start[0], token.string, DOCSTRINGS)


_LITERAL = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|`(?:[^`\\]|\\.)*`")
"""A string of TypeScript.  Single quotes are left out: prettier writes double ones."""
_COMMENT = re.compile(r"/\*.*?\*/|(?<!:)//[^\n]*", re.DOTALL)


def script_texts() -> Iterator[Piece]:
    """Comments and string literals of TypeScript and of the scripts, by a simple scan, and the lines of the manifest."""
    for file in sorted([*ROOT.glob("extension/src/**/*.ts"), *ROOT.glob("scripts/**/*.mjs")]):
        source = file.read_text(encoding="utf-8")
        for pattern, scope in ((_LITERAL, STRINGS), (_COMMENT, DOCSTRINGS)):
            for found in pattern.finditer(source):
                yield Piece(file, source.count("\n", 0, found.start()) + 1, found.group(), scope)
    manifest = ROOT / "package.json"
    for number, line in enumerate(manifest.read_text(encoding="utf-8").splitlines(), 1):
        yield Piece(manifest, number, line, STRINGS)


def complaints(pieces: Iterable[Piece]) -> Iterator[str]:
    """A line for each phrase in the pieces, with the advice.  A phrase may go over the end of a line."""
    patterns = [(re.compile(phrase.pattern.replace(" ", r"[\s*]+"), re.IGNORECASE), phrase) for phrase in PHRASES]
    for piece in pieces:
        for pattern, phrase in patterns:
            if piece.scope not in phrase.scopes:
                continue
            for found in pattern.finditer(piece.text):
                line = piece.line + piece.text.count("\n", 0, found.start())
                sentence = piece.text[max(0, found.start() - 80) : found.end() + 80]
                if not any(part in sentence for part in ALLOWED):
                    where = f"{piece.file.relative_to(ROOT)}:{line}"
                    yield f"{where}: {' '.join(found.group().split())!r} ({piece.scope}); write: {phrase.advice}"


def unsaid(pieces: Iterable[Piece]) -> list[str]:
    """A line for each sentence of a kind in `UNSAID`, with the kind.  It may go over the end of a line."""
    patterns = [(re.compile(pattern.replace(" ", r"[\s*]+")), kind) for kind, pattern in UNSAID.items()]
    return [
        f"{piece.file.relative_to(ROOT)}:{piece.line + piece.text.count(chr(10), 0, found.start())}: "
        f"{' '.join(piece.text[found.start() : found.end() + 60].split())!r} ({kind})"
        for piece in pieces
        for pattern, kind in patterns
        for found in pattern.finditer(piece.text)
    ]


def all_texts() -> list[Piece]:
    """Everything that the repository says to people."""
    return [*docs(), *python_texts(), *script_texts()]


def main() -> int:
    """Prints what is found; 1 if there is anything."""
    found = list(complaints(all_texts()))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
