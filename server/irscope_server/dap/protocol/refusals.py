"""Requests of the protocol that are refused, each with the reason."""

from __future__ import annotations

from collections.abc import Mapping

_RECORD = "The run is a record of what the compiler did: it can be looked at, but not changed."
_MEMORY = "A stored run has no memory: there are no addresses of data in it."

REFUSALS: Mapping[str, str] = {
    "setVariable": _RECORD,
    "setExpression": _RECORD,
    "writeMemory": _RECORD,
    "readMemory": _MEMORY,
    "locations": "Values of irscope have no locations.",
    "modules": "A compile has no modules; loadedSources lists its stages.",
    "terminateThreads": "A thread is a compile that has ended already; terminate ends the session.",
    "runInTerminal": "This is a request from adapters to clients.",
    "startDebugging": "This is a request from adapters to clients.",
}
