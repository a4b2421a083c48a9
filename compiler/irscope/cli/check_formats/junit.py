"""A check as JUnit XML: a suite for each script, a case for each finding that fails and for each bound."""

from __future__ import annotations

import re
from xml.etree import ElementTree as xml

from irscope.cli.checked import Check, ScriptCheck, remedy_of, shown_path
from irscope.findings.registry import kind_of
from irscope.protocol import Finding
from irscope.vocabulary.visible import visible

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ROOT_ATTRIBUTES = ("tests", "failures", "errors")


def written(check: Check) -> str:
    """The document, in ASCII."""
    suites = [_suite(script) for script in check.scripts]
    root = xml.Element("testsuites", {"name": "irscope check"})
    for name in _ROOT_ATTRIBUTES:
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in suites)))
    root.set("time", f"{sum(script.report.outcome.seconds for script in check.scripts):.3f}")
    root.extend(suites)
    xml.indent(root)
    text: bytes = xml.tostring(root, "us-ascii", xml_declaration=False)
    return f'<?xml version="1.0" encoding="US-ASCII"?>\n{text.decode()}\n'


def _suite(script: ScriptCheck) -> xml.Element:
    name, seconds = _text(script.name), script.report.outcome.seconds
    suite = xml.Element("testsuite", {"name": name})
    ends = _case(suite, name, "the script runs to its end", seconds)
    if script.trouble:
        _fail(ends, "error", script.verdict.value, script.trouble, "")
    findings = script.failing_findings
    if not findings and not script.trouble:
        _case(suite, name, "no finding fails the check")
    for finding in findings:
        _finding_case(suite, name, finding)
    for each in script.bounds:
        case = _case(suite, name, each.name)
        if each.exceeded:
            _fail(case, "failure", each.name, each.message, "")
    found = {"failures": len(suite.findall("*/failure")), "errors": len(suite.findall("*/error"))}
    for key, number in {"tests": len(suite), **found, "skipped": 0}.items():
        suite.set(key, str(number))
    suite.set("time", f"{seconds:.3f}")
    out = [f"not captured: {gap.what} ({gap.why})" for gap in script.report.capture_gaps]
    if out:
        xml.SubElement(suite, "system-out").text = _text("\n".join(out))
    return suite


def _finding_case(suite: xml.Element, script: str, finding: Finding) -> None:
    path, start = shown_path(finding.file), finding.range.start
    where = f"{path}:{start.line}:{start.column + 1}"
    case = _case(suite, script, f"{kind_of(finding.kind).label} {finding.code} at {where}")
    case.set("file", _text(path))
    case.set("line", str(start.line))
    details = "\n".join(filter(None, [where, finding.message, finding.explanation, remedy_of(finding), finding.link]))
    _fail(case, "failure", finding.kind, finding.message, details)


def _case(suite: xml.Element, script: str, name: str, seconds: float = 0.0) -> xml.Element:
    return xml.SubElement(suite, "testcase", {"classname": script, "name": _text(name), "time": f"{seconds:.3f}"})


def _fail(case: xml.Element, tag: str, type: str, message: str, details: str) -> None:
    failure = xml.SubElement(case, tag, {"type": _text(type), "message": _text(message)})
    failure.text = _text(details or message)


def _text(text: str) -> str:
    """The text with what XML 1.0 cannot hold written out."""
    return _NOT_XML.sub(lambda match: f"\\u{ord(match[0]):04x}", visible(text))
