"""No module outside of its pipeline names a stage: all others ask for its kind's role, rank and flags."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from irscope.pipelines.registry import stage_kinds
from sources import ROOT, Nodes, found_by, name_of, rule

PIPELINES = {ROOT / "compiler" / "irscope" / room for room in ("pipelines", "pipeline_captures")}
NAMES = frozenset(stage_kinds())
ONE_WORD = frozenset(name for name in NAMES if "-" not in name)
SEVERAL_WORDS = NAMES - ONE_WORD
"""What is one of these is a stage's name; ``kernel`` and ``values`` are words for other things, too."""
ASKS = ("role_of", "stage_kind", "stage_title_of_name", "short_stage_title", "position")


def parts_of(text: str) -> list[str]:
    """The parts of an ID or of a name; nothing where the text is prose, such as an example in a help text."""
    return [] if re.search(r"\s", text) else text.split("/")


def is_name(text: str) -> bool:
    """Whether a text can only be a stage's name or a part of its ID: ``output-code``, ``/binary``."""
    parts = parts_of(text)
    return any(part in SEVERAL_WORDS for part in parts) or (parts[:1] == [""] and parts[-1] in ONE_WORD)


def texts_in(node: ast.AST) -> list[str]:
    return [each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def names_a_stage(node: ast.expr) -> bool:
    """Whether an expression compares a stage's name with a word, or asks the registry for one."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        named = any(text in NAMES for side in sides for text in texts_in(side))
        return named and any(re.search(r"stage\w*\.name$|\bstage_name$", ast.unparse(side)) for side in sides)
    if isinstance(node, ast.Call) and name_of(node.func) in ASKS:
        return any(text in NAMES for argument in node.args for text in texts_in(argument))
    return False


@rule
def found_in(nodes: Nodes) -> Iterator[int]:
    documentation = {id(each.value) for each in nodes.of(ast.Expr)}
    for text in nodes.of(ast.Constant):
        if isinstance(text.value, str) and id(text) not in documentation and is_name(text.value):
            yield text.lineno
    for node in [*nodes.of(ast.Compare), *nodes.of(ast.Call)]:
        if names_a_stage(node):
            yield node.lineno


def test_no_module_outside_of_a_pipeline_names_a_stage() -> None:
    found, read = [], 0
    for path, lines in found_by(found_in).items():
        if not PIPELINES & {*path.parents}:
            read += 1
            found += [f"{path.relative_to(ROOT)}:{line}" for line in sorted({*lines})]
    assert found == []
    assert read > 200


def test_the_extension_names_no_stage() -> None:
    """Its roles come from the wire types, which are generated; no stage's name of several words is a role."""
    found, read = [], 0
    for path in sorted((ROOT / "extension" / "src").rglob("*.ts")):
        read += 1
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
            texts = (
                first or second or third
                for first, second, third in re.findall(r'"([^"]*)"|\'([^\']*)\'|`([^`]*)`', line)
            )
            if any(part in SEVERAL_WORDS for text in texts for part in parts_of(text)):
                found.append(f"{path.relative_to(ROOT)}:{number}")
    assert found == []
    assert read > 100


@pytest.mark.parametrize(
    "source",
    [
        'id.replace("/output-code", "/x")',
        'x = f"{kernel}/binary"',
        'HOMES = {"_pre_grad_passes": "pre-grad-graph"}',
        'stage.name == "kernel"',
        'one.stage.name in ("ptx", "sass")',
        'role_of("guards")',
        'registry.stage_kind("kernel")',
        '"0/0/forward-graph" in known',
    ],
)
def test_the_walk_sees_names(source: str) -> None:
    assert [*found_in(Nodes(source))] != []


@pytest.mark.parametrize(
    "source",
    [
        '"""Of ``output-code``."""',
        'facts["kernel"]',
        'help = "a stage, as in post-grad-graph"',
        'entry.name == "values"',
        'language == "ptx"',
    ],
)
def test_the_walk_lets_other_words_be(source: str) -> None:
    assert [*found_in(Nodes(source))] == []
