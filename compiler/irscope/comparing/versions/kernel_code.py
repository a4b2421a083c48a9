"""The code of kernels that two runs have by the same names: what differs in one, and what differs in all of them.

Versions write other lines around every kernel.  These are one difference, and hide no other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from irscope.comparing.versions.differences import Difference, kernel_names, paired
from irscope.protocol import Compile, Report
from irscope.store.store import Store
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.suggestions import listed
from irscope.vocabulary.units import count

_COMMENT = re.compile(r"#\s.*|[\'\"]?backend_hash[\'\"]?: [\'\"][^\'\"]*[\'\"]|#include.*")
_WORD = re.compile(r"[A-Za-z_]\w{4,}")
_FEWEST = 2
_LONGEST = 60


@dataclass(frozen=True)
class CodePair:
    """A kernel of the older run and its namesake in the same compile of the newer one; the texts are `plain_code`."""

    name: str
    compile: Compile
    before: str
    after: str


def plain_code(text: str) -> str:
    """Source text of a kernel without comments, names of headers, and what names this machine or version."""
    return "\n".join(line.rstrip() for line in _COMMENT.sub("", text).splitlines() if line.strip())


def code_pairs(store: Store, old: Report, new: Report) -> list[CodePair]:
    """All kernels that both runs have, of the compiles whose kernels have the same names."""
    found = []
    for a, b in paired(old, new):
        if kernel_names(a, old.kernels) != kernel_names(b, new.kernels):
            continue
        mine, theirs = (
            {kernel.name: kernel for kernel in report.kernels if kernel.compile == one.id and kernel.is_generated}
            for report, one in ((old, a), (new, b))
        )
        for name in mine.keys() & theirs.keys():
            texts = store.stage_text(old.run, mine[name].stage), store.stage_text(new.run, theirs[name].stage)
            found.append(CodePair(name, b, plain_code(texts[0]), plain_code(texts[1])))
    return sorted(found, key=lambda one: (one.compile.id, one.name))


def code_differences(pairs: Sequence[CodePair]) -> Iterator[Difference]:
    """What all kernels have in common, then for each compile the kernels that differ in something else."""
    gone, came = _everywhere(pairs)
    if gone or came:
        parts = [f"{word} {_quoted(lines)}" for word, lines in (("with", came), ("without", gone)) if lines]
        yield Difference("code", f"all {len(pairs)} kernels are now {', and '.join(parts)}")
    compiles: dict[str, list[CodePair]] = {}
    for one in pairs:
        if _without(one.before, gone) != _without(one.after, came):
            compiles.setdefault(one.compile.id, []).append(one)
    for others in compiles.values():
        what = f"other code in {count(len(others), 'kernel')}: {listed([one.name for one in others])}"
        yield Difference("code", what, others[0].compile.file, others[0].compile.line, others[0].compile.id)


def changed_words(pairs: Sequence[CodePair]) -> set[str]:
    """Names that the kernels of one side alone have.  Numbered ones (``tmp3``) are left out: each kernel counts its own."""
    before, after = (
        {word for text in texts for word in _WORD.findall(text) if not word[-1].isdigit()}
        for texts in ([one.before for one in pairs], [one.after for one in pairs])
    )
    return before ^ after


def _everywhere(pairs: Sequence[CodePair]) -> tuple[set[str], set[str]]:
    """Lines that every kernel has lost, and those that every kernel has gained."""
    if len(pairs) < _FEWEST:
        return set(), set()
    texts = [(_lines(one.before), _lines(one.after)) for one in pairs]
    return (
        set.intersection(*(before - after for before, after in texts)),
        set.intersection(*(after - before for before, after in texts)),
    )


def _lines(text: str) -> set[str]:
    return {line.strip() for line in text.splitlines()}


def _without(text: str, lines: set[str]) -> str:
    return "\n".join(line for line in text.splitlines() if line.strip() not in lines)


def _quoted(lines: set[str]) -> str:
    first = min(lines, key=lambda line: (-len(_WORD.findall(line)), line))
    short = first if len(first) <= _LONGEST else f"{first[:_LONGEST]}…"
    return f"`{short}`" if len(lines) == 1 else f"`{short}` and {count(len(lines) - 1, 'other line')}"
