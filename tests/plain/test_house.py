"""What `npm run check:house` counts, on small texts."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import house
import pytest
import sentences


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        ("pass", 1),
        ("if a:\n  pass\n elif b:\n  pass\n else:\n  pass", 3),
        ("for x in y:\n  while x:\n   pass", 3),
        ("try:\n  pass\n except A:\n  pass\n except B:\n  pass", 3),
        ("return a if b else c", 2),
        ("return [x for y in z for x in y if x]", 3),
        ("assert a", 2),
        ("match a:\n  case 1:\n   pass\n  case _:\n   pass", 3),
        ("return a and b and c or d", 4),
        ("def inner():\n  if a:\n   pass", 2),
        ("return lambda: a or b", 2),
    ],
)
def test_paths(body: str, paths: int) -> None:
    (function,) = ast.parse(f"def f():\n {body}").body
    assert isinstance(function, ast.FunctionDef)
    assert house.paths_of(function) == paths


def test_functions_with_too_many_paths_are_listed_the_worst_first() -> None:
    few, many, more = (f"def f{count}():\n" + " assert a\n" * count for count in (14, 15, 16))
    trees = {"a.py": ast.parse(few + many), "b.py": ast.parse(f"class A:\n {more.replace(chr(10), chr(10) + ' ')}\n")}
    assert house.branched(trees) == [(17, "b.py:2 f16"), (16, "a.py:16 f15")]


@pytest.mark.parametrize(
    "decision",
    [
        "if 'grad_mode' in finding.message: pass",
        "return fix.title == OTHER",
        "return fix.title in OTHERS",
        "return PATTERN.search(finding.explanation)",
        "return PATTERN.finditer(a['list'] if a else finding.message)",
        "return re.findall('x', gap.why)",
        "for hint in finding.hints:\n  if PATTERN.match(hint): pass",
        "return [hint for hint in finding.hints if hint.startswith('Or')]",
        "text = finding.message.lower()\n return 'x' in text",
        "match, torch = PATTERN.search(finding.message), None",
        "return {part for part in title.split(THEN)}",
        "return {fix.title: fix for fix in fixes}",
        "return table.get(fix.title)",
        "return table[fix.title]",
        "return 'x' in f'{fix.title} of it'",
        "return 'x' in ' '.join(finding.hints)",
        "match fix.title:\n  case 'a': pass",
        "return helper(finding.message)",
    ],
)
def test_a_decision_that_reads_a_sentence_back(decision: str) -> None:
    helper = "def helper(text):\n return text.endswith('.')\n"
    assert len(sentences.decisions({"a.py": ast.parse(f"{helper}def f(finding, fix, title):\n {decision}\n")})) == 1


@pytest.mark.parametrize(
    "plain",
    [
        "return Fix(fix.title, fix.caveat)",
        "return f'{fix.title}; then {title}'",
        "return finding.code == 'GB0124' and fix.title",
        "return fix.title is None or fix.title != ''",
        "return 'Tensor' in spot.cause.explanation",
        "return PATTERN.sub('', pytorch.explanation)",
        "return helper(finding.code)",
    ],
)
def test_what_reads_no_sentence(plain: str) -> None:
    helper = "def helper(text):\n return text.endswith('.')\n"
    text = f"{helper}def f(finding, fix, title, spot, pytorch: BreakMessage):\n {plain}\n"
    assert sentences.decisions({"a.py": ast.parse(text)}) == []


def test_a_module_that_is_in_no_layer() -> None:
    layers = house.layers_of(
        project([{"type": "layers", "containers": ["irscope"], "layers": ["cli | (top)", "ir : low.one"]}])
    )
    assert layers == {"irscope.cli", "irscope.top", "irscope.ir", "irscope.low.one"}
    files = ["__init__", "cli/__init__", "ir/deep/graphs", "low/one", "low/two", "low/__init__", "other"]
    trees = {f"compiler/irscope/{file}.py": ast.parse("import irscope.ir") for file in files}
    trees["compiler/irscope/bare/__init__.py"] = ast.parse('"""Nothing is imported here."""\nimport os')
    left_out = ["__init__", "low/two", "low/__init__", "other"]
    assert house.outside(trees, layers) == [f"compiler/irscope/{file}.py" for file in left_out]


def project(contracts: list[dict[str, Any]]) -> dict[str, Any]:
    return {"tool": {"importlinter": {"contracts": contracts}}, "project": {"dependencies": ["msgspec>=0.20,<1"]}}


def test_steps_that_lead_up_to_the_server() -> None:
    text = (
        "NAME = 'irscope_server.fixing.own'\n"
        "Propose = Callable[[Finding, str], Sequence[Fix]]\n"
        "def f(propose: Propose, say: Callable[[str], None]):\n"
        " importlib.import_module(NAME)\n"
        " importlib.import_module('irscope.cli')\n"
    )
    trees = {f"compiler/irscope/{file}.py": ast.parse(text) for file in ("cli/agents", "cli/fixing", "driver/trying")}
    assert house.upward_steps(trees) == [
        "compiler/irscope/cli/fixing.py:4 imports irscope_server.fixing.own",
        "compiler/irscope/driver/trying.py:3 is given propose",
        "compiler/irscope/driver/trying.py:4 imports irscope_server.fixing.own",
    ]


def test_packages_that_nobody_gets_by_default() -> None:
    trees = {
        "a.py": ast.parse("import os, libcst.matchers\nfrom irscope.ir import graphs"),
        "b.py": ast.parse("import msgspec"),
    }
    assert house.not_installed(trees, ["msgspec>=0.20,<1"]) == {"libcst": 1}


def test_a_house_that_holds_and_one_that_falls_short() -> None:
    contracts = project([{"type": "layers", "layers": ["irscope", "irscope_server"]}])
    trees = {"compiler/irscope/fixing/rules.py": ast.parse("import ast\nProposal()")}
    measured = list(house.rows(contracts, trees, dict.fromkeys(trees, 9500)))
    assert all(row.holds for row in measured)
    assert measured[0].measured == "9,500, rules in 1 room"
    trees["compiler/irscope/driver/fixing/rules.py"] = ast.parse(
        "import libcst\nmodel.Proposal()\nProposal()\ndef f(fix):\n return fix.title in A"
    )
    measured = list(house.rows(contracts, trees, dict.fromkeys(trees, 9500)))
    assert [row.measured for row in measured if not row.holds] == [
        "19,000, rules in 2 rooms",
        "1 in 1 files",
        "1 need libcst",
    ]


def test_how_long_the_documents_are(tmp_path: Path) -> None:
    for name, words in (("README.md", 701), ("docs/ARCHITECTURE.md", 3000), ("docs/findings/a.md", 44_299)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("`a` |\n" * (words // 2) + "a" * (words % 2), encoding="utf-8")
    measured = list(house.rows_of_words(tmp_path))
    assert [(row.measured, row.holds) for row in measured] == [("701", False), ("3,000", True), ("48,000", True)]


def test_how_long_runs_from_a_fresh_clone_took() -> None:
    noted = {"suite": {"seconds": 721, "date": "2026-11-28", "cores": 2}}
    suite, start = house.rows_of_seconds(noted)
    assert (suite.measured, suite.holds) == ("721 s on 2026-11-28, 2 cores", False)
    assert (start.measured, start.holds) == ("not measured on this machine", False)
    noted["suite"]["seconds"] = 720
    assert next(house.rows_of_seconds(noted)).holds


def test_sentences_that_nobody_would_say_are_counted() -> None:
    places = [f"a.py:{line}: 'Of it.' (begins with Of)" for line in range(house.MOST_UNSAID + 1)]
    row = house.unsaid_row(places)
    assert (row.measured, row.holds, row.option, row.places) == ("41", False, "unsaid", tuple(places))
    assert house.unsaid_row(places[1:]).holds
