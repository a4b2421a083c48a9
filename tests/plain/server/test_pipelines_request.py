"""The request for all pipelines: what is known does not wait for a trial."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from irscope_server.app import features as request
from irscope_server.app.server import IrscopeServer
from irscope_server.base.params import PipelinesParams


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether trials were made, each time that pipelines were asked about."""
    asked: list[bool] = []

    def none(*_: object, with_trials: bool) -> list[object]:
        asked.append(with_trials)
        return []

    monkeypatch.setattr(request, "availability_of", none)
    monkeypatch.setattr(request, "_one_at_a_time", asyncio.Lock())
    return asked


async def test_what_is_known_is_said_while_a_trial_of_a_closed_list_goes_on(asked: list[bool]) -> None:
    settings = SimpleNamespace(interpreter="/python", pipeline="export")
    server = cast(IrscopeServer, cast(Any, SimpleNamespace(trusted=True, settings=settings)))
    async with request._one_at_a_time:
        found = await asyncio.wait_for(request.pipelines(server, PipelinesParams()), 10)
        assert found.chosen == "export"
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(request.pipelines(server, PipelinesParams(trials=True)), 0.05)
    assert asked == [False], "two trials are not made at once"
