"""How little is imported before the script of `irscope run` begins."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest
from irscope.cli.arguments import parser_of, parsers, read
from irscope.cli.commands import COMMANDS, RUNS
from irscope.vocabulary.command_line import Parser

LATER = (
    "irscope.capture",
    "irscope.events",
    "irscope.findings",
    "irscope.pipeline_captures",
    "irscope.provenance",
    "irscope.targets",
    "irscope.symbolic",
    "torch",
)
"""Rooms that are only needed while the script runs, in its own process, or when it has ended."""

SCRIPT = """
import sys
from irscope.cli.main import main
from irscope.cli.arguments import read
options = read(["run", "x.py"])
import irscope.cli.running
print(options.do, *sys.modules, sep="\\n")
"""


def test_a_run_imports_little_before_its_script_begins() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=True)
    do, *modules = done.stdout.splitlines()
    assert do == "('running', 'run')"
    assert "irscope.driver.driver" in modules
    assert [name for name in modules if name.startswith(LATER)] == []
    others = {f"irscope.cli.{row.adder.partition(':')[0]}" for row in COMMANDS.values()} - {"irscope.cli.run_arguments"}
    assert others.isdisjoint(modules)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "view"])
def test_the_parser_of_one_command_is_that_of_the_whole_line(name: str) -> None:
    _, all_parsers = parsers()
    alone, among_all = parser_of(name), all_parsers[name]
    assert alone.format_help() == among_all.format_help()
    assert alone.prog == among_all.prog == f"irscope {name}"
    assert alone.description != "" and COMMANDS[name].help
    module, function = alone.get_default("do")
    assert callable(getattr(importlib.import_module(f"irscope.cli.{module}"), function))


def test_commands_that_run_a_script_take_its_arguments() -> None:
    _, all_parsers = parsers()
    assert [name for name, each in all_parsers.items() if _takes_arguments(each)] == list(RUNS)
    options = read(["fix", "a.py", "--apply", "--", "--lr", "3"])
    assert (options.command, options.script, options.args, options.apply) == ("fix", "a.py", ["--lr", "3"], True)
    options = read(["run", "-m", "package.train", "one", "--", "--two"])
    assert (options.command, options.script, options.args) == ("run", None, ["one", "--two"])


def _takes_arguments(parser: Parser) -> bool:
    return any(action.dest == "args" for action in parser._actions)
