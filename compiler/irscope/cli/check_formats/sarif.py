"""A check as SARIF 2.1.0 (OASIS), which code scanning reads: results with their rules, places and fixes."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from irscope import __version__
from irscope.cli.checked import Check, ScriptCheck, remedy_of, shown_path
from irscope.findings.control import identity
from irscope.findings.registry import kind_of
from irscope.findings.verdicts import BOUNDS
from irscope.protocol import Finding, Fix, Range, Related, Severity
from irscope.usercode.notebooks import notebook_of
from irscope.vocabulary.visible import visible

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {
    Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFORMATION: "note", Severity.HINT: "note",
}  # fmt: skip
_MOST_RELATED = 20

Json = dict[str, Any]


def written(check: Check) -> str:
    """One SARIF log with one run, in ASCII."""
    rules: dict[str, Json] = {}
    results: dict[object, Json] = {}
    seen: Counter[str] = Counter()
    for script in check.scripts:
        for at, finding in enumerate(script.report.findings):
            if finding.cause not in results:
                rules.setdefault(finding.code, _rule(finding))
                results[finding.cause] = _result(finding, at in script.failing, seen)
        for each in script.exceeded:
            rules.setdefault(each.name, {"id": each.name, "shortDescription": _message(BOUNDS[each.name].help)})
            results[script.name, each.name] = {
                "ruleId": each.name, "level": "error", "message": _message(each.message),
                "locations": [{"physicalLocation": _place(script.report.script)}],
            }  # fmt: skip
    driver = {"name": "irscope", "semanticVersion": __version__, "rules": list(rules.values())}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(script) for script in check.scripts],
        "results": list(results.values()),
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _rule(finding: Finding) -> Json:
    kind = kind_of(finding.kind)
    rule: Json = {"id": visible(finding.code), "name": visible(kind.label), "shortDescription": _message(kind.label)}
    rule["defaultConfiguration"] = {"level": _LEVELS[kind.severity]}
    if finding.link and finding.link.startswith("https://"):
        rule["helpUri"] = quote(finding.link.encode("utf-8", "backslashreplace"), safe=":/?#[]@!$&'()*+,;=%~")
    return rule


def _result(finding: Finding, fails: bool, seen: Counter[str]) -> Json:
    said = [finding.message, finding.explanation, remedy_of(finding)]
    result: Json = {
        "ruleId": visible(finding.code),
        "level": _LEVELS[finding.severity],
        "message": _message("\n".join(filter(None, said))),
        "locations": [{"physicalLocation": _place(finding.file, finding.range)}],
        "partialFingerprints": {"irscopeFinding/v1": _fingerprint(finding, seen)},
        "occurrenceCount": max(1, finding.count),
        "properties": {"kind": finding.kind, "failsCheck": fails, "compiles": list(finding.compiles)},
    }
    if finding.related:
        result["relatedLocations"] = [_related(each) for each in finding.related[:_MOST_RELATED]]
    fixes = [
        _fix(fix, finding.file) for fix in finding.fixes if fix.edits and not notebook_of(fix.file or finding.file)
    ]
    if fixes:
        result["fixes"] = fixes
    return result


def _fingerprint(finding: Finding, seen: Counter[str]) -> str:
    """Stays the same when lines above the finding come or go; the second one of a kind on equal lines has a number."""
    name = identity(finding)
    seen[name] += 1
    return hashlib.sha256(f"{name} {seen[name]}".encode("utf-8", "backslashreplace")).hexdigest()


def _related(related: Related) -> Json:
    return {"physicalLocation": _place(related.file, related.range), "message": _message(related.message)}


def _fix(fix: Fix, file: str) -> Json:
    edits = [{"deletedRegion": _region(edit.range), "insertedContent": {"text": edit.text}} for edit in fix.edits]
    change = {"artifactLocation": _place(fix.file or file)["artifactLocation"], "replacements": edits}
    return {"description": _message("\n".join(filter(None, [fix.title, fix.caveat]))), "artifactChanges": [change]}


def _place(file: str, range: Range | None = None) -> Json:
    notebook = notebook_of(file)  # its lines are those of a cell, which no reader of SARIF knows
    path = shown_path(notebook or file)
    uri = Path(path).as_uri() if os.path.isabs(path) else quote(path.encode("utf-8", "surrogateescape"))
    place: Json = {"artifactLocation": {"uri": uri}}
    if range is not None and not notebook:
        place["region"] = _region(range)
    return place


def _region(range: Range) -> Json:
    return {
        "startLine": max(1, range.start.line), "startColumn": range.start.column + 1,
        "endLine": max(1, range.end.line), "endColumn": range.end.column + 1,
    }  # fmt: skip


def _invocation(script: ScriptCheck) -> Json:
    return {
        "executionSuccessful": not script.trouble,
        "arguments": [visible(script.name)],
        "toolExecutionNotifications": list(_notifications(script)),
    }


def _notifications(script: ScriptCheck) -> Iterator[Json]:
    place = [{"physicalLocation": _place(script.report.script)}]
    if script.trouble:
        yield {"level": "error", "message": _message(script.trouble), "locations": place}
    for gap in script.report.capture_gaps:
        yield {"level": "warning", "message": _message(f"Not captured: {gap.what} ({gap.why})"), "locations": place}


def _message(text: str) -> Json:
    """Readers make links of ``[text](target)``; a text of a script's is none."""
    return {"text": visible(text).replace("[", "\\[").replace("]", "\\]")}
