"""The recompile limit: a warning where PyTorch goes on without the compiler, an error where it raises, with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from irscope.protocol import Severity
from support import run_forked, write

SCRIPT = """
import torch

torch._dynamo.config.recompile_limit = 2
{setting}

@torch.compile({options})
def f(x, name):
    return x + len(name)

for name in ("a", "bb", "ccc"):
    f(torch.ones(4), name)
"""
RAISES = "torch._dynamo.config.fail_on_recompile_limit_hit"


@pytest.mark.parametrize(
    ("setting", "options", "severity", "words"),
    [
        ("", "", Severity.WARNING, "now run as plain Python"),
        ("", "fullgraph=True", Severity.ERROR, "now fail, because of fullgraph=True"),
        (f"{RAISES} = True", "", Severity.ERROR, f"now fail, because of {RAISES}"),
    ],
)
def test_severity_and_last_reason(setting: str, options: str, severity: Severity, words: str, tmp_path: Path) -> None:
    ran = run_forked(write(tmp_path, SCRIPT.format(setting=setting, options=options)), tmp_path / "runs.db")
    [finding] = ran.findings("recompile-limit")
    assert finding.severity is severity
    assert words in finding.message
    assert finding.message.endswith("The last change: `name` was 'bb' when this was compiled and is 'ccc' now.")
    assert "The last reason: 0/1: name == 'bb'" in finding.explanation
    assert ran.report.capture_gaps == ()


def test_error_on_recompile_is_an_error(tmp_path: Path) -> None:
    setting = "torch._dynamo.config.error_on_recompile = True"
    ran = run_forked(write(tmp_path, SCRIPT.format(setting=setting, options="")), tmp_path / "runs.db")
    [finding] = ran.findings("compile-error")
    assert finding.severity is Severity.ERROR
    assert "`name` was 'a' when this was compiled" in finding.message
