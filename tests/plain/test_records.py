"""`irscope.vocabulary.records` makes what `dataclasses` makes."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import pkgutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from typing import Any, ClassVar

import irscope
import pytest
from irscope.vocabulary import records


def declare(dataclass: Any) -> tuple[Any, ...]:
    """The same classes by one of the two decorators."""

    @dataclass(frozen=True)
    class Point:
        """Where."""

        KIND: ClassVar[str] = "point"
        x: int
        y: int = 2
        names: list[str] = field(default_factory=list, repr=False)
        note: str = field(default="", compare=False)

        @property
        def sum(self) -> int:
            """Of both."""
            return self.x + self.y

    @dataclass(frozen=True)
    class Deep(Point):
        z: int = 3

    @dataclass
    class Count:
        start: int
        now: int = field(default=0, init=False)
        seen: dict[str, int] = field(default_factory=dict, init=False)

        def __post_init__(self) -> None:
            self.now = self.start

    @dataclass
    class Nothing: ...

    @dataclass(frozen=True)
    class Loud:
        x: int

        def __eq__(self, other: object) -> bool:
            return True

        def __repr__(self) -> str:
            return "loud"

    @dataclass(frozen=True, kw_only=True)
    class Options:
        seed: int = 0
        tags: dict[str, int] = field(default_factory=dict)

    @dataclass(frozen=True)
    class Asked(Options):
        name: str  # type: ignore[misc]
        mode: str = ""

    return Point, Deep, Count, Nothing, Loud, Asked


OURS, THEIRS = declare(records.dataclass), declare(dataclasses.dataclass)


def told(made: tuple[Any, ...]) -> Iterator[object]:
    """What there is to see of such classes."""
    point, deep, count, nothing, loud, asked = made
    for one in (
        point(1),
        point(1, names=["a"]),
        point(x=1, note="n"),
        deep(1, 5, z=9),
        count(4),
        nothing(),
        loud(7),
        asked("a", "b", seed=2),
    ):
        yield repr(one).split(".")[-1]
        yield dataclasses.is_dataclass(one)
        yield [(f.name, f.init, f.compare, f.repr) for f in dataclasses.fields(one)]
        yield dataclasses.asdict(one)
        yield vars(copy.copy(one)) == vars(one)
        yield (copy.copy(one) == one, one == 3, one != 3)
    yield (point(1) == point(1), point(1) == point(2), point(1, note="a") == point(1, note="b"), point(1) == deep(1))
    yield hash(dataclasses.replace(point(1), names=())) == hash(dataclasses.replace(point(1), names=(), note="other"))
    yield (
        dataclasses.replace(deep(1), y=8),
        point(1).names is point(1).names,
        point.__match_args__,
        asked.__match_args__,
        loud(1) == loud(2),
    )
    for attempt in (
        lambda: point(),
        lambda: point(1, 2, [], "", 5),
        lambda: point(1, w=2),
        lambda: setattr(point(1), "x", 2),
        lambda: setattr(point(1), "other", 2),
        lambda: delattr(point(1), "x"),
        lambda: hash(count(1)),
        lambda: hash(point(1, names=["a"])),
        lambda: count(1, 2),
        lambda: asked("a", "b", 3),
    ):
        with pytest.raises((TypeError, AttributeError)) as error:
            attempt()
        yield error.type
    match point(4):
        case point(x, 2):
            yield x


def test_they_are_dataclasses_in_all_that_is_seen() -> None:
    ours, theirs = ([str(one).replace("declare.<locals>.", "") for one in told(made)] for made in (OURS, THEIRS))
    assert len(ours) > 50
    assert ours == theirs


def test_an_undecorated_subclass_may_have_attributes_of_its_own() -> None:
    point: Any = OURS[0]

    class Own(point):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(5)
            self.more = 1

    assert (Own().x, Own().more) == (5, 1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Own().x = 3


def test_a_default_is_there_before_the_first_object_is_made() -> None:
    @records.dataclass
    class Counter:
        start: int
        seen: int = field(default=0)

        def __init__(self) -> None:
            self.start = 5

    assert (Counter().start, Counter().seen) == (5, 0)


def test_two_threads_may_ask_for_the_fields_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    derive = dataclasses.dataclass

    def slowly(*args: Any, **keywords: Any) -> Any:
        time.sleep(0.01)  # here the others come
        return derive(*args, **keywords)

    monkeypatch.setattr(dataclasses, "dataclass", slowly)
    for _ in range(5):
        point, *_ = declare(records.dataclass)
        asking = threading.Barrier(4)

        def ask(point: Any = point, asking: threading.Barrier = asking) -> tuple[object, ...]:
            asking.wait()
            return point.__match_args__, point(1), dataclasses.is_dataclass(point), point(1) == point(1)

        with ThreadPoolExecutor(4) as pool:
            answers = [one.result() for one in [pool.submit(ask) for _ in range(4)]]
        assert answers == [(("x", "y", "names", "note"), point(1), True, True)] * 4
        assert dataclasses.fields(point)[2].default_factory is list  # worked out twice it would be gone


def test_every_class_of_irscope_can_be_made_of_its_fields() -> None:
    """``__init__`` is written when it is first called: none of them may fail only then."""
    found = 0
    for module in pkgutil.walk_packages(irscope.__path__, "irscope."):
        if module.name.endswith(("__main__", ".boot")) or ".pipelines." in module.name:
            continue
        for cls in vars(importlib.import_module(module.name)).values():
            if isinstance(cls, type) and cls.__module__ == module.name and dataclasses.is_dataclass(cls):
                given = {f.name: None for f in dataclasses.fields(cls) if f.init}
                if not hasattr(cls, "__post_init__"):
                    made = cls(**given)
                    assert {name: getattr(made, name) for name in given} == given, cls
                    found += 1
    assert found > 150
