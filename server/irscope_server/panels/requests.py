"""All requests of the panels, as their modules declare them."""

from __future__ import annotations

import importlib
import pkgutil

from irscope_server import panels
from irscope_server.base.params import PanelRequest


def _declared() -> dict[str, PanelRequest]:
    names = [found.name for found in pkgutil.iter_modules(panels.__path__, f"{panels.__name__}.")]
    modules = [importlib.import_module(name) for name in names if name != __name__]
    requests: list[PanelRequest] = [module.REQUEST for module in modules if hasattr(module, "REQUEST")]
    return {request.method: request for request in requests}


REQUESTS = _declared()
"""The ``REQUEST`` of each module of this package, by its method."""
