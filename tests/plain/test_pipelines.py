"""The declarations of pipelines and of their kinds of stages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from irscope.pipelines import registry
from irscope.pipelines.base import Package, pip_command
from irscope.pipelines.registry import (
    group_of,
    group_position,
    pipeline_named,
    pipelines,
    position,
    stage_kind,
    stage_kinds,
)
from irscope.protocol import DEFAULT_PIPELINE
from irscope.vocabulary.stages import OTHER_GROUP, Role
from support import REPOSITORY

CACHED = (
    registry.pipelines,
    registry.stage_kinds,
    registry.stage_kind,
    registry.group_of,
    registry.group_position,
    registry.names_with,
)
ONE_MORE = """
from irscope.pipelines.base import Pipeline
from irscope.vocabulary.stages import Role, StageKind

PIPELINE = Pipeline({name!r}, "Mine", (StageKind("my-ir", "My IR", {language!r}, Role.TEXT, 3),))
"""


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """The registry reads the environment once, so it is emptied before and after."""

    def forget() -> None:
        for cached in CACHED:
            cached.cache_clear()

    forget()
    yield monkeypatch
    monkeypatch.undo()
    forget()


def test_inductor_is_found() -> None:
    assert pipelines()["inductor"].stages[0].name == "bytecode"


def test_the_usual_one_is_first_and_those_that_are_only_known_are_last() -> None:
    known = list(pipelines().values())
    assert known[0].name == DEFAULT_PIPELINE
    assert [bool(one.unsupported) for one in known] == sorted(bool(one.unsupported) for one in known)
    for one in known:
        assert bool(one.unsupported) == (not one.stages) == bool(one.shows), one.name


def test_one_that_is_only_known_says_why_it_cannot_run() -> None:
    for name in ("ipex", "neuron", "glow"):
        with pytest.raises(LookupError, match=re.escape(pipelines()[name].unsupported)):
            pipeline_named(name)


def test_the_command_that_installs_is_one_to_type() -> None:
    packages = (Package("onnx_thing.driver", "onnx-thing>=1.2"), Package("other.part"), Package("other"))
    assert pip_command("/a b/python", packages) == "'/a b/python' -m pip install 'onnx-thing>=1.2' other"


def test_what_is_aside_is_beside_a_stage_on_the_way() -> None:
    kinds = stage_kinds()
    for kind in kinds.values():
        if kind.aside:
            assert kinds[kind.aside].rank is not None, kind.name
            assert kind.rank is None, kind.name
        if kind.versions_as:
            assert kinds[kind.versions_as].is_graph, kind.name


def test_the_order_of_the_pipeline_is_that_of_the_ranks() -> None:
    accumulated = "compiled-autograd-graph"  # comes in the course of a backward, yet is the first graph of its compile
    for pipeline in pipelines().values():
        ranked = [kind for kind in pipeline.stages if kind.rank is not None and kind.role is not Role.LOWERED]
        ranks = [kind.rank for kind in ranked if kind.rank is not None and kind.name != accumulated]
        assert ranks == sorted(ranks), pipeline.name
    assert position("kernel", False) < position("dynamo-graph", True)


def test_groups_are_declared_and_come_in_the_order_of_the_pipeline() -> None:
    names = [kind.name for kind in pipelines()["inductor"].stages]
    groups = sorted({group_of(name) for name in names}, key=group_position)
    assert [group.title for group in groups] == ["Dynamo", "AOTAutograd", "Inductor", "Kernels", "Other"]


def test_the_stages_of_a_pipeline_that_shares_kinds_are_in_its_order() -> None:
    for pipeline in pipelines().values():
        order = [position(kind.name, False) for kind in pipeline.stages]
        assert order == sorted(order), pipeline.name
    kinds = [kind.name for kind in pipelines()["aotinductor"].stages]
    groups = sorted({group_of(name) for name in kinds}, key=group_position)
    titles = [group.title for group in groups]
    assert titles == ["torch.export", "AOTAutograd", "Inductor", "AOTInductor", "Kernels"]


def test_an_unknown_kind_is_text_that_is_aside() -> None:
    kind = stage_kind("some-day")
    assert (kind.title, kind.role, kind.rank) == ("Some day", Role.FACTS, None)


def test_a_kind_without_a_group_is_listed_below_its_pipeline(fresh: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(ONE_MORE.format(name="mine", language="mlir"))
    fresh.setenv(registry.VARIABLE, str(file))
    assert group_of("my-ir").title == "Mine"
    assert group_of("some-day") == OTHER_GROUP


def test_one_file_is_one_pipeline(fresh: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(ONE_MORE.format(name="mine", language="mlir"))
    fresh.setenv(registry.VARIABLE, str(file))
    assert "mine" in pipelines()
    assert stage_kind("my-ir").language == "mlir"


def test_two_of_one_name_are_refused(fresh: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "second_inductor.py"
    file.write_text(ONE_MORE.format(name="inductor", language="mlir"))
    fresh.setenv(registry.VARIABLE, str(file))
    with pytest.raises(ValueError, match="two pipelines are called 'inductor'"):
        pipelines()


def test_one_stage_cannot_be_two_things(fresh: pytest.MonkeyPatch, tmp_path: Path) -> None:
    files = [tmp_path / "one.py", tmp_path / "other.py"]
    for file, language in zip(files, ("mlir", "json"), strict=True):
        file.write_text(ONE_MORE.format(name=file.stem, language=language))
    fresh.setenv(registry.VARIABLE, ":".join(map(str, files)))
    with pytest.raises(ValueError, match="'my-ir'"):
        stage_kinds()


def test_a_file_that_is_not_there_is_named(fresh: pytest.MonkeyPatch) -> None:
    fresh.setenv(registry.VARIABLE, "/no/such/pipeline.py")
    with pytest.raises((ImportError, OSError), match="pipeline"):
        pipelines()


def test_what_a_pipeline_needs_is_an_extra_of_its_name() -> None:
    project = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    for one in pipelines().values():
        if one.needs and not one.unsupported:
            extra = re.search(rf"^{one.name} = \[(.*)\]$", project, re.MULTILINE)
            assert extra is not None, f"pyproject.toml has no extra {one.name}"
            assert re.findall(r'"([^"]+)"', extra[1]) == [package.to_install for package in one.needs]
