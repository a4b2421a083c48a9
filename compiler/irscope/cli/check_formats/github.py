"""Workflow commands of GitHub Actions: what a check found becomes annotations at the lines of a pull request.

The runner obeys what it reads, so all that a script or PyTorch has named is escaped, and so is what a script prints
(`Quoted`): a line ``::add-mask::…`` of a script's would be a command, too.
"""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Iterable

from irscope.cli.checked import Check, ScriptCheck, remedy_of, shown_path
from irscope.findings.registry import kind_of
from irscope.findings.verdicts import BOUNDS
from irscope.protocol import Finding
from irscope.usercode.notebooks import notebook_of
from irscope.vocabulary.visible import printable, visible


def written(check: Check) -> str:
    """A line for each finding; one that several scripts have is told once."""
    lines = list(dict.fromkeys(line for script in check.scripts for line in _commands(script)))
    lines += [_plain(f"{script.name}: {script.verdict.value}") for script in check.scripts]
    return "\n".join(lines) + "\n"


def _commands(script: ScriptCheck) -> Iterable[str]:
    failing = set(script.failing)
    for at, finding in enumerate(script.report.findings):
        yield _command("error" if at in failing else "notice", finding)
    place = {"file": shown_path(script.report.script)}
    for each in script.exceeded:
        yield command("error", f"{each.message} ({BOUNDS[each.name].flag})", {**place, "title": each.name})
    if script.trouble:
        yield command("error", script.trouble, {**place, "title": script.verdict.value})
    for gap in script.report.capture_gaps:
        yield command("warning", f"Not captured: {gap.what} ({gap.why})", place)


def _command(level: str, finding: Finding) -> str:
    where, notebook = finding.range, notebook_of(finding.file)
    properties = {"file": shown_path(notebook or finding.file)}
    if not notebook:
        properties |= {"line": str(where.start.line), "endLine": str(where.end.line)}
        if where.start.line == where.end.line:  # GitHub takes columns of one line alone
            properties |= {"col": str(where.start.column + 1), "endColumn": str(where.end.column + 1)}
    title = f"{kind_of(finding.kind).label} {finding.code}"
    return command(
        level, "\n".join(filter(None, [finding.message, remedy_of(finding)])), {**properties, "title": title}
    )


def command(name: str, message: str, properties: dict[str, str]) -> str:
    """A workflow command on one line: ``::error file=a.py,line=3::message``."""
    said = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {said}::{_data(message)}"


def _data(text: str) -> str:
    escaped = visible(text.replace("\r\n", "\n").replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))
    return escaped.replace("##[", "# #[")  # an older form of commands, which the runner finds anywhere in a line


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _plain(text: str) -> str:
    """A line that is not a command."""
    return f"irscope check: {_quoted(text)}"


def _quoted(line: str) -> str:
    return printable(line).replace("##[", "# #[")


class Quoted:
    """Prints what a script prints on standard error, each line after a bar, so that none of them is a command."""

    _ENDS = re.compile(r"\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
    _LONGEST = 8_192
    """Characters; a line without an end is not kept any longer."""

    def __init__(self) -> None:
        self._left = {"stdout": "", "stderr": ""}
        self._decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in self._left}

    def __call__(self, stream: str, data: bytes) -> None:
        """Takes what came from a stream of the script's."""
        *lines, left = self._ENDS.split(self._left[stream] + self._decoders[stream].decode(data))
        if len(left) > self._LONGEST:
            lines, left = [*lines, left], ""
        self._left[stream] = left
        self._print(lines)

    def end_line(self) -> None:
        """The script has ended, maybe in the middle of a line."""
        self._print([left for left in self._left.values() if left])
        self._left = dict.fromkeys(self._left, "")

    def _print(self, lines: Iterable[str]) -> None:
        for line in lines:
            print(f"| {_quoted(line)}", file=sys.stderr)
        sys.stderr.flush()
