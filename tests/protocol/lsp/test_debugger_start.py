"""What the language server does so that the first debug session of an editor starts fast."""

from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path

import pytest
from irscope_server.dap.trace import traces
from raw import Raw
from support import Instant, late

LAUNCHER = Path(__file__).parents[3] / "extension" / "launch_server.py"


def test_the_adapters_modules_are_compiled_before_it_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    compiled = Path(importlib.util.cache_from_source(traces.__file__))
    server = Raw([sys.executable, "-I", "-S", "-X", f"pycache_prefix={tmp_path}", str(LAUNCHER)])
    server.ask(1, "initialize", {"processId": None, "rootUri": None, "capabilities": {}})
    server.notify("initialized", {})
    begun = Instant()
    while not compiled.is_file():
        assert not late(begun, 60), "the module was not compiled"
        time.sleep(0.1)
    server.ask(2, "shutdown")
    server.notify("exit")
    assert server.process.wait(60) == 0
