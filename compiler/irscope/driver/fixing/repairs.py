"""Which fixes repair nothing: what broke is left out of compiled code, so the finding is gone, and no graph grows.

They are offered last and by themselves.  *Fix everything that is proven* leaves them out.
"""

from __future__ import annotations

LIBRARY_TO_PYTHON = "Leave functions of the library to Python, and compile what they call"
FUNCTION_TO_PYTHON = "Leave the function to Python, and compile what it calls"
HELPER_LEFT_OUT = "Leave the helper out of compiled code"
THEN = "; then "
"""Between the titles of a chain of fixes."""
_NO_REPAIRS = frozenset({LIBRARY_TO_PYTHON, FUNCTION_TO_PYTHON, HELPER_LEFT_OUT})


def is_repair(title: str) -> bool:
    """Whether a fix, or each of a chain of fixes, repairs what broke, by its title."""
    return not _NO_REPAIRS & set(title.split(THEN))
