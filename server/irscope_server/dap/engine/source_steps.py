"""Steps over the user's lines as a debugger for Python takes them: calls that a line makes are not entered."""

from __future__ import annotations

from collections.abc import Sequence

from irscope.usercode.user_files import is_user_file

from irscope_server.dap.base.sections import SourceSection

_MOST_LOOKED_AT = 500
"""Lines that `back` looks through for the one from which `over` leads to a line."""


def over(source: SourceSection, spot: int, just_my_code: bool) -> int | None:
    """The next line at the same depth of calls or less; None after the last one.

    A line that only calls has no operation, so it is not among the spots.  Where nothing else is left, the step goes to
    the outermost of the lines that are left.
    """
    depth = source.depth(spot)
    left = range(spot + 1, len(source.spots))
    shown = [each for each in left if _is_shown(source, spot, each, just_my_code)]
    return _first_at_most(source, shown, depth)


def back(source: SourceSection, spot: int, just_my_code: bool) -> int | None:
    """The line from which `over` leads here, the outermost of them; else the line before; None before the
    first one."""
    before = range(spot - 1, max(-1, spot - 1 - _MOST_LOOKED_AT), -1)
    shown = (each for each in before if _is_shown(source, spot, each, just_my_code))
    leading = [each for each in shown if over(source, each, just_my_code) == spot]
    if leading:
        return min(leading, key=lambda each: source.depth(each) or 0)
    return spot - 1 if spot > 0 else None


def _is_shown(source: SourceSection, at: int, spot: int, just_my_code: bool) -> bool:
    """Who is in a library already goes on there."""
    return not just_my_code or is_user_file(source.spots[spot].file) or not is_user_file(source.spots[at].file)


def _first_at_most(source: SourceSection, spots: Sequence[int], depth: int | None) -> int | None:
    outermost: tuple[int, int] | None = None
    for spot in spots:
        found = source.depth(spot)
        if depth is None or found is None or found <= depth:
            return spot
        if outermost is None or found < outermost[0]:
            outermost = (found, spot)
    return None if outermost is None else outermost[1]
