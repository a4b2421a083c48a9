"""``irscope/age``: whether a newer run of the same script is kept."""

from __future__ import annotations

from dataclasses import dataclass

from irscope_server.base.context import ReadContext
from irscope_server.base.params import PanelRequest
from irscope_server.base.run_age import age_of


@dataclass(frozen=True)
class AgeParams:
    """A run."""

    run: str


@dataclass(frozen=True)
class AgeResult:
    """What a view of the run says about its age."""

    text: str
    """``Older run: deep, 09:59. Newest: fast, 10:15.``; empty for the newest run of its script."""


async def age(context: ReadContext, params: AgeParams) -> AgeResult:
    """Never raises for a run that is gone: its view says so itself."""
    return AgeResult((await age_of(context.archive, params.run)).text)


REQUEST = PanelRequest("irscope/age", AgeParams, AgeResult, age)
