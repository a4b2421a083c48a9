"""What trials of fixes have shown is kept by content, until something that it depends on changes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from irscope.protocol import OutcomeKind
from irscope_server.language.tried_fixes import untried
from irscope_server.running.proofs import Combined, Proofs, Proven, _stamp


class Played(Proofs):
    """Notes which runs would be tried, and tells at once what a test says."""

    def __init__(self, says: Callable[[], Proven]) -> None:
        super().__init__(None, True)  # type: ignore[arg-type]
        self.says, self.began_work = says, 0

    def _work(self, run: Any, seconds: Any, stop: Any, tell: Any, own: Any, findings: Any) -> None:
        self.began_work += 1
        self.own = own
        tell(self.says())


def _run(**changes: Any) -> Any:
    spec = SimpleNamespace(cells=(), script="/a.py", args=(), python="python", cwd="/", env={})
    plan = SimpleNamespace(settings=SimpleNamespace(fixes_seconds=changes.pop("seconds", 20)))
    for name in changes.keys() & vars(spec).keys():
        setattr(spec, name, changes.pop(name))
    return SimpleNamespace(**{"key": "a", "name": "a.py", "spec": spec, "plan": plan, "torch": "2.13.0", **changes})


def _ended(text: str = "x") -> Any:
    report = SimpleNamespace(outcome=SimpleNamespace(kind=OutcomeKind.COMPLETED), findings=(1,))
    return SimpleNamespace(run="1", report=report, texts={"/a.py": [text]})


def _tried_again(proofs: Played, run: Any, ended: Any) -> bool:
    """Whether a run that has ended is tried, after one that was."""

    async def both() -> None:
        for one in ((_run(), _ended()), (run, ended)):
            proofs.ended(*one)
            await asyncio.sleep(0.05)

    asyncio.run(both())
    return proofs.began_work == 2


@pytest.mark.parametrize(
    ("run", "text", "again"),
    [
        (_run(), "x", False),
        (_run(), "y", True),
        (_run(torch="2.14.0"), "x", True),
        (_run(seconds=90), "x", True),
        (_run(args=("--large",)), "x", True),
    ],
)
def test_what_is_known_is_not_tried_again(run: Any, text: str, again: bool) -> None:
    assert _tried_again(Played(lambda: Proven(is_whole=True)), run, _ended(text)) is again


def test_trials_that_were_stopped_go_on_after_the_next_run() -> None:
    proofs = Played(lambda: Proven({("a", "b", "c", proofs.began_work): None}))  # type: ignore[dict-item]
    assert _tried_again(proofs, _run(), _ended())
    assert len(proofs.of_run("1").tried) == 2  # what was known stays until it is known again


def test_another_text_of_an_imported_file_makes_proofs_invalid(tmp_path: Path) -> None:
    helper = tmp_path / "helper.py"
    helper.write_text("SCALE = 1\n")
    for other in (None, "SCALE = 20\n"):
        files = {str(helper): _stamp(str(helper)), "/missing.py": (0, 0)}
        combined = {"": Combined({}, (), {})}
        proofs = Played(lambda files=files, combined=combined: Proven({}, combined, files, True))  # type: ignore[misc]
        if other:
            helper.write_text(other)
        assert _tried_again(proofs, _run(), _ended()) is bool(other)
    assert proofs.own == {"/a.py"}


@pytest.mark.parametrize(
    ("is_whole", "said"), [(True, "not tried: no time was left"), (False, "not tried")], ids=["no time left", "stopped"]
)
def test_what_no_trial_has_reached_says_why(is_whole: bool, said: str) -> None:
    may_end = threading.Event()

    def wait() -> Proven:
        may_end.wait(60)
        return Proven(is_whole=is_whole)

    proofs = Played(wait)
    context: Any = SimpleNamespace(proofs=proofs)

    async def told() -> list[str]:
        proofs.ended(_run(), _ended())
        while_trying = untried(context, "1")
        may_end.set()
        while proofs.is_trying("1"):
            await asyncio.sleep(0.01)
        return [while_trying, untried(context, "1").partition(",")[0], untried(context, "another run")]

    assert asyncio.run(told()) == ["being tried", said, "not tried"]
