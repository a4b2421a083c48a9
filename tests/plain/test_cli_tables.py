"""Tables on terminals of every width, and names that do not exist."""

from __future__ import annotations

import argparse
import io
import itertools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from irscope.cli.arguments import parsers
from irscope.cli.completing import FOLDER, SHELLS
from irscope.cli.main import main
from irscope.cli.tables import listed_in, middle_cut, table
from irscope.cli.text import Paint, width_of
from irscope.vocabulary.command_line import filled
from irscope.vocabulary.suggestions import did_you_mean, did_you_mean_id, listed

HEAD = ["id", "name", "file", "outcome", "size", "time"]
ROWS = [
    ["20260101-000000-aaaaaa", "torch_dynamo_resume_in_a_long_name_at_71", "/a/long/path/名前/of/a/model.py:71", "ok", "1,234", "2 min 0 s"],
    ["20260101-000000-bbbbbb", "f", "", "graph-break", "5", "1 s"],
]  # fmt: skip
RIGHT, WHOLE = frozenset({4, 5}), frozenset({0})


def plain(monkeypatch: pytest.MonkeyPatch, columns: int | None, encoding: str = "utf-8") -> Paint:
    if columns is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", str(columns))
    return Paint(io.TextIOWrapper(io.BytesIO(), encoding))


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("columns", [40, 60, 80, 100, 120, 200])
def test_a_table_fits_and_is_aligned(columns: int, encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = table(HEAD, ROWS, plain(monkeypatch, columns, encoding), RIGHT, WHOLE)
    assert max(map(width_of, lines)) <= columns
    text = "\n".join(lines)
    for whole in ("1,234", "2 min 0 s", *(["20260101-000000-aaaaaa"] if columns > 40 else [])):
        assert whole in text
    assert encoding == "utf-8" or text.isascii()
    for cells in (("name", "torch", r"f(?!\w)"), ("outcome", "ok", "graph-break")):
        found = [re.search(rf"(?:^|\s)({cell})", line) for cell in cells for line in lines]
        assert len({width_of(match.string[: match.start(1)]) for match in found if match}) == 1, text


def test_a_pipe_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = table(HEAD, ROWS, plain(monkeypatch, None), RIGHT, WHOLE)
    assert len(lines) == 3 and "…" not in "".join(lines)
    assert all(cell in lines[1] for cell in ROWS[0])


def test_how_it_looks_at_60_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """As few lines as can be; the path is cut in its middle, where that is in front of a wide character."""
    assert table(HEAD, ROWS, plain(monkeypatch, 60), RIGHT, WHOLE) == [
        "id                      name",
        "    file                       outcome       size       time",
        "20260101-000000-aaaaaa  torch_dynamo_resu…_a_long_name_at_71",
        "    /a/long/path…/model.py:71  ok           1,234  2 min 0 s",
        "20260101-000000-bbbbbb  f",
        "                               graph-break      5        1 s",
    ]


@pytest.mark.parametrize(
    ("text", "width", "cut"),
    [
        ("abcdefghij", 10, "abcdefghij"),
        ("abcdefghij", 5, "ab…ij"),
        ("名前名前名前", 7, "名…前"),
        ("\033[31mabcdefghij\033[0m", 5, "\033[31mab…ij\033[0m"),
        ("abc", 1, "…"),
    ],
)
def test_the_middle_is_cut(text: str, width: int, cut: str) -> None:
    assert middle_cut(text, width) == cut
    assert width_of(cut) <= width


def test_facts_take_as_many_lines_as_they_need() -> None:
    assert listed_in(["one fact", "two", "three"], None) == ["one fact, two, three"]
    assert listed_in(["one fact", "two", "three"], 14) == ["one fact, two,", "three"]


def test_descriptions_are_filled_and_examples_are_not() -> None:
    text = "Some words that\nare filled.\n\n  a --command     its comment\n  b               other"
    assert filled(text, 40) == ["Some words that are filled.", "", *text.split("\n")[3:]]
    assert filled(text, 24)[3:] == ["  a --command", "      its comment", "  b", "      other"]


@pytest.mark.parametrize("columns", ["60", "80", "120"])
def test_every_help_fits(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    top, commands = parsers()
    for parser in (top, *commands.values()):
        long = [line for line in parser.format_help().split("\n") if len(line) > int(columns)]
        assert all(len(line.split()) == 1 or line.startswith("  irscope") for line in long), (parser.prog, long)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["rnu"], "irscope: error: unknown command: rnu. Did you mean run?"),
        (
            ["zzz"],
            "The commands are: run, check, pipelines, targets, verify-target, env, fix, tune, compare, profile, open, list, show, graph, report, repro, explain, diff, why-miss, view, attach, mcp, values, diverge, kernel, watch, completion.",
        ),
        (["show", "--jsno"], "irscope show: error: unknown option: --jsno. Did you mean --json?"),
        (["list", "--limt=3"], "Did you mean --limit?"),
        (["explain", "--fusoin", "a", "b"], "Did you mean --fusion?"),
        (["run", "x.py", "--lr", "3"], "unknown option: --lr. What belongs to the script comes after --"),
        (["run", "x.py", "-x"], "unexpected: -x. What belongs to the script comes after --"),
        (["--jsno", "list"], "unknown option: --jsno. Options of a command come after it"),
        (["list", "too", "much"], "unexpected: too much."),
        (["list", "--", "x"], "take arguments after --"),
    ],
)
def test_wrong_usage_names_what_was_meant(args: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(args)
    captured = capsys.readouterr()
    assert (stop.value.code, captured.out) == (2, "")
    assert message in captured.err
    assert len(captured.err.splitlines()) == 2


def test_the_beginning_of_an_option_is_enough(tmp_path: Path) -> None:
    assert main(["list", "--lim", "3", "--stor", str(tmp_path / "runs.db")]) == 0


@pytest.mark.parametrize(
    ("typed", "known", "said"),
    [
        ("post-grad", ["pre-grad-graph", "post-grad-graph"], " Did you mean post-grad-graph?"),
        ("Fused_Relu", ["cpp_fused_relu_0", "cpp_fused_relu_1"], " Did you mean cpp_fused_relu_0 or cpp_fused_relu_1?"),
        ("relu", ["cpp_fused_sigmoid_0", "cpp_fused_relu_and_more_0"], " Did you mean cpp_fused_relu_and_more_0?"),
        ("0/2", ["0/0", "0/1"], " Did you mean 0/0 or 0/1?"),
        ("zzz", ["abc"], ""),
        ("x", [], ""),
    ],
)
def test_the_nearest_names(typed: str, known: list[str], said: str) -> None:
    assert did_you_mean(typed, known) == said


def test_the_nearest_run() -> None:
    runs = ["20260102-101010-aaaaaa", "20260101-101010-bbbbbb"]
    assert did_you_mean_id("20260102-10101x", runs) == " Did you mean 20260102-101010-aaaaaa?"
    assert did_you_mean_id("20260201", runs) != ""
    assert did_you_mean_id("newest", runs) == ""


def test_long_lists_are_cut() -> None:
    assert listed([]) == "none"
    assert listed(["a", "b", "a"]) == "a, b"
    assert listed("x" * 100 + str(i) for i in range(50)).endswith(" and 45 more")


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes(tmp_path: Path) -> None:
    (tmp_path / "training.py").write_text("")
    (tmp_path / "folder").mkdir()
    typed = {
        "irscope sh": "show", "irscope run --la": "--lane", "irscope run --lane d": "deep", "irscope run tr": "training.py",
        "irscope run a.py tr": "training.py", "irscope run --cwd ''": "folder", "irscope view --no": "--no-browser",
        "irscope show --costs --target h1": "h100", "irscope completion z": "zsh", "irscope run --python tr": "training.py",
    }  # fmt: skip
    asked = "".join(
        f'COMP_WORDS=({words}); COMP_CWORD={words.count(" ")}; _shtab_irscope 2>/dev/null; echo "${{COMPREPLY[*]}}"\n'
        for words in typed
    )
    script = f'eval "$({sys.executable} -m irscope completion bash)"\ncomplete -p irscope\n{asked}'
    done = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, cwd=tmp_path, timeout=60, check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, map(os.path.abspath, sys.path)))},
    )  # fmt: skip
    first, *completed = done.stdout.splitlines()
    assert first.endswith("-F _shtab_irscope irscope")
    assert dict(zip(typed, completed, strict=True)) == typed


def test_every_option_is_completed() -> None:
    """The scripts are generated; `scripts/generate.py --check` says when they are stale."""
    _, commands = parsers()
    for shell, (name, parser) in itertools.product(SHELLS, commands.items()):
        text = (FOLDER / f"irscope.{shell}").read_text("utf-8")
        assert name in text
        actions = parser._option_string_actions.items()
        options = [o for o, action in actions if o.startswith("--") and action.help != argparse.SUPPRESS]
        # fish has `-l json`, tcsh a list of names; `docs/json.md` is no option.
        missing = [o for o in options if not re.search(rf"(?<![\w/.-])(--)?{o.lstrip('-')}(?![\w.])", text)]
        assert missing == [], shell
        assert os.path.expanduser("~") not in text


def test_a_script_that_is_missing_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("irscope.cli.completing.FOLDER", tmp_path)
    assert main(["completion", "bash"]) == 2
    assert "python scripts/generate.py" in capsys.readouterr().err
