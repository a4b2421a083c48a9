"""Which fixes repair nothing: what broke is left out of compiled code, so the finding is gone, and no graph grows.

They are offered last and by themselves.  *Fix everything that is proven* leaves them out.
"""

from __future__ import annotations

from collections.abc import Sequence

LIBRARY_TO_PYTHON = "Leave functions of the library to Python, and compile what they call"
FUNCTION_TO_PYTHON = "Leave the function to Python, and compile what it calls"
HELPER_LEFT_OUT = "Leave the helper out of compiled code"
THEN = "; then "
"""Between the titles of a chain of fixes."""
_NO_REPAIRS = frozenset({LIBRARY_TO_PYTHON, FUNCTION_TO_PYTHON, HELPER_LEFT_OUT})


def chained(titles: Sequence[str]) -> str:
    """The title of fixes of which each leads to the next: ``Keep it a tensor; then compute both sides``."""
    first, *others = titles
    return THEN.join([first, *(title[:1].lower() + title[1:] for title in others)])


def is_repair(title: str) -> bool:
    """Whether a fix, or each of a chain of fixes, repairs what broke, by its title."""
    return not _NO_REPAIRS & {one[:1].upper() + one[1:] for one in title.split(THEN)}
