"""Regular expressions that are compiled when they are first used."""

from __future__ import annotations

import importlib
import pkgutil
import re
from typing import Any

import irscope
import pytest
from irscope.vocabulary import patterns


def test_a_pattern_does_what_re_does(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    original = re.compile

    def counted(text: str, flags: int = 0) -> Any:
        compiled.append(text)
        return original(text, flags)

    monkeypatch.setattr(re, "compile", counted)
    word = patterns.pattern(r"(?P<first>b)\w", re.IGNORECASE)
    assert compiled == []
    found = word.search("a BC d")
    assert found is not None and found["first"] == "B"
    assert word.sub("-", "abc Bd") == "a- -"
    assert (word.pattern, word.groups) == (r"(?P<first>b)\w", 1)
    assert [one[0] for one in word.finditer("bb ba")] == ["bb", "ba"]
    with pytest.raises(AttributeError):
        word.no_such_name  # type: ignore[attr-defined]  # noqa: B018


def test_every_pattern_of_irscope_can_be_compiled() -> None:
    """One that is wrong must not fail only in the run that needs it."""
    found = 0
    for module in pkgutil.walk_packages(irscope.__path__, "irscope."):
        if not module.name.endswith(("__main__", ".boot")) and ".pipelines." not in module.name:
            for value in vars(importlib.import_module(module.name)).values():
                if isinstance(value, patterns._Pattern):
                    assert value.groups >= 0
                    found += 1
    assert found > 40
