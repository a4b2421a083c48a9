"""The line that is named for an exception."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from irscope.events.raised import place_of
from support import lines_marked


@contextlib.contextmanager
def closes_badly() -> Iterator[None]:
    yield
    raise ValueError("nothing to close")  # raised


def test_the_line_of_an_exception_is_the_user_s_although_the_standard_library_came_after_it(tmp_path: Path) -> None:
    library = tmp_path / "site-packages" / "library.py"
    library.parent.mkdir()
    library.write_text("def enter(context):\n    with context:\n        pass\n", encoding="utf-8")
    space: dict[str, object] = {}
    exec(compile(library.read_text(encoding="utf-8"), str(library), "exec"), space)

    for context, mark in ((closes_badly(), "raised"), (contextlib.closing(object()), "entered")):  # type: ignore[type-var]
        with pytest.raises((ValueError, AttributeError)) as raised:
            space["enter"](context)  # type: ignore[operator]  # entered
        place = place_of(raised.value)
        (line,) = lines_marked(Path(__file__).read_text(encoding="utf-8"), f"# {mark}")
        assert place is not None and (place.file, place.line) == (__file__, line)
