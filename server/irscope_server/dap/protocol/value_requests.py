"""Requests of our own that look at numbers, and the arguments of ``launch`` and ``attach`` for a value session."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import ClassVar

from irscope.protocol import ValuesRequest
from irscope.store.value_file import folder_of
from irscope.usercode.writing import WriteError
from irscope.values.blame.reproducer import proven, write_reproducer
from irscope.values.run.client import ValueProcessError

from irscope_server.dap.engine.recording import PlaceInRun
from irscope_server.dap.protocol.session import Session, State
from irscope_server.dap.protocol.wire import Arguments, Body, NotNow, RequestFailed, WrongMessage

_STOPPED = frozenset({State.STOPPED})


def values_of(arguments: Arguments) -> ValuesRequest | None:
    """What ``values``, ``divergence`` and ``inputs`` ask for; None: no value session.

    Raises WrongMessage for any other value, RequestFailed if the file of inputs does not exist.
    """
    wanted, divergence = arguments.raw("values"), arguments.flag("divergence")
    inputs = arguments.text("inputs", "")
    if inputs:
        inputs = os.path.abspath(os.path.join(arguments.text("cwd", "") or os.getcwd(), os.path.expanduser(inputs)))
        if not os.path.isfile(inputs):
            raise RequestFailed(f"File of inputs not found: {inputs}.", show=True)
    if wanted is None or isinstance(wanted, bool):
        if not wanted and not divergence and not inputs:
            return None
        return ValuesRequest(stage="all", divergence=divergence, inputs=inputs)
    if not isinstance(wanted, dict):
        raise WrongMessage("'values' must be true, false or an object with compile, stage, call.")
    named = arguments.object("values")
    return ValuesRequest(
        compile=named.text("compile", ""),
        stage=named.text("stage", "all"),
        call=named.integer("call", 1, least=1),
        divergence=divergence,
        inputs=inputs,
    )


class ValueRequests:
    """``irscopeValues``: a node's value with its picture as numbers; ``irscopePicture``: the picture of an expression as
    the view asks for it; ``irscopeReproducer``: writes a reproducer."""

    allowed: ClassVar[Mapping[str, frozenset[State]]] = dict.fromkeys(
        ("irscopeValues", "irscopePicture", "irscopeReproducer"), _STOPPED
    )

    def __init__(self, session: Session) -> None:
        self._session = session

    def irscopeValues_request(self, arguments: Arguments) -> Body:
        """The value that was kept at a frame, with its node and stage; raises NotNow if there is none."""
        place = self._place(arguments)
        found = self._session.here().values.at(place)
        if found is None:
            raise NotNow('No value was recorded here. Start a value session: "values": true.')
        return {"node": found.node, "stage": found.values.stage, "value": found.value}

    def irscopePicture_request(self, arguments: Arguments) -> Body:
        """The picture of an expression's value as numbers; raises NotNow or RequestFailed if there is none."""
        place, values = self._place(arguments), self._session.here().values
        found = values.at(place)
        text = arguments.text("expression", "") or "value"
        view = arguments.raw("view")
        if view is not None and not isinstance(view, dict):
            raise WrongMessage("'view' must be an object.")
        if found is None and text == "value":
            raise NotNow('No value was recorded here. Start a value session: "values": true.')
        try:
            picture = values.picture(text, place, view or {})
        except ValueProcessError as error:
            raise RequestFailed(str(error)) from None
        return {
            "expression": text, "node": found.node if found is not None else "",
            "stage": found.values.stage if found is not None else "", "compared": sorted(values.compared_tensors(place)),
            "picture": picture,
        }  # fmt: skip

    def irscopeReproducer_request(self, arguments: Arguments) -> Body:
        """The path of the reproducer that was written; in a run of this session it is tried afterwards."""
        here = self._session.here()
        path = os.path.abspath(os.path.expanduser(arguments.text("path")))
        data = here.values.reproducer(self._place(arguments))
        if data is None:
            raise RequestFailed(
                "No reproducer is available: nothing differs here, or no part differs on its own.", show=True
            )
        report = here.recording.report
        try:
            write_reproducer(path, data["reproducer"], folder_of(here.recording.store.path, report.run))
        except WriteError as error:
            raise RequestFailed(str(error), show=True) from None
        except (ValueError, KeyError, TypeError) as error:
            raise RequestFailed(f"The reproducer could not be written: {error}", show=True) from None
        if self._session.outcome is None:
            said = f"{path} was written but not run: it comes from a stored run, which may be from another machine.\n"
            self._session.afterwards(lambda: self._session.output(said))
            return {"path": path}
        python = here.values.python
        threading.Thread(target=self._prove, args=(path, python), name="irscope-reproducer", daemon=True).start()
        return {"path": path}

    def _prove(self, path: str, python: str) -> None:
        proof = proven(path, python, os.environ)
        said = (
            "fails on its own"
            if proof.failed
            else f"was written, but does not fail on its own:\n{proof.output[-2000:]}"
        )
        self._session.post(lambda: self._session.output(f"{path} {said}\n", "console"))

    def _place(self, arguments: Arguments) -> PlaceInRun:
        session, here = self._session, self._session.here()
        if "frameId" in arguments:
            compile, level = session.frame(arguments.integer("frameId"))
            return level.place or here.walker.place(compile)
        return here.walker.place(next(reversed(session.last_stops), 0))
