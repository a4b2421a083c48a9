"""pygls' protocol, with irscope's own messages and without its ways of losing a request."""

from __future__ import annotations

import json
import logging
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInternalError
from pygls.protocol import (
    JsonRPCNotification,
    JsonRPCRequestMessage,
    LanguageServerProtocol,
    default_converter,
    lsp_method,
)

from irscope_server.base.bodies import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, BrokenBody, id_in, wrong_shape
from irscope_server.base.params import PARAMS
from irscope_server.base.stage_uris import SCHEME, write_empty_authority
from irscope_server.base.wire import BadParams, from_wire

log = logging.getLogger(__name__)

_NOT_INITIALIZED = -32002


class RequestFailed(JsonRpcException):
    """A request that is right but cannot be answered: it names something unknown, or the store cannot be read."""

    CODE = -32803


@dataclass(frozen=True)
class Encoded:
    """A result that is JSON already, made in another thread: a big one would stop the event loop."""

    json: str


def fast_converter() -> Any:
    """What makes structures of LSP's messages.  It ends at the first thing that does not fit: to collect all of them
    takes seconds and hundreds of megabytes where a client sends a long text in place of a list."""
    converter = default_converter()
    converter.detailed_validation = False
    return converter


class IrscopeProtocol(LanguageServerProtocol):
    """Receives messages one by one, and answers every request, also one that it cannot read."""

    def receive(self, data: Any) -> None:
        """Handles one message as `json` read it; whatever is in it, the next one is still read."""
        try:
            self._receive(data)
        except Exception:
            log.exception("A message was ignored")

    def _receive(self, data: Any) -> None:
        if isinstance(data, BrokenBody):
            log.error("A message was ignored: %s", data)
            self._refuse(data.id, PARSE_ERROR, str(data))
            return
        if wrong := wrong_shape(data):
            log.error("A message was ignored: %s", wrong)
            self._refuse(id_in(data), INVALID_REQUEST, wrong)
            return
        method, request = data.get("method"), data.get("id") if "method" in data else None
        if request is not None and (refusal := self._refusal_now(method)) is not None:
            self._refuse(request, *refusal)
            return
        if method == types.CANCEL_REQUEST and id_in(data.get("params")) not in self._request_futures:
            return  # answered already, as most are; pygls would warn each time
        try:
            message = self.structure_message(data)
        except (BadParams, JsonRpcException, RecursionError) as error:
            log.error("%s was ignored: %s", method or "A response", error)
            if request is not None:
                self._refuse(request, INVALID_PARAMS, f"{method}: {error}")
            return
        try:
            self.handle_message(message)
        except Exception:
            log.exception("%s could not be handled", method or "A response")
            if request is not None:
                self._refuse(request, JsonRpcInternalError.CODE, f"{method} could not be handled")

    def _refusal_now(self, method: str) -> tuple[int, str] | None:
        """Why the server does not answer such a request in the state that it is in: code and text."""
        if self._workspace is None and method != types.INITIALIZE:
            return _NOT_INITIALIZED, "the server is not initialized"
        if self._workspace is not None and method == types.INITIALIZE:
            return INVALID_REQUEST, "the server is initialized already"
        return (INVALID_REQUEST, "the server has been shut down") if self._shutdown else None

    def structure_message(self, data: dict[str, Any]) -> Any:
        """pygls' structures for what LSP defines, `irscope_server.base.wire` for the rest.

        Raises BadParams or JsonRpcException.
        """
        method = data.get("method")
        if method in PARAMS:
            params = from_wire(PARAMS[method], data.get("params"))
            if "id" in data:
                return JsonRPCRequestMessage(data["id"], method, "2.0", params)
            return JsonRPCNotification(method, "2.0", params)
        return super().structure_message(data)

    def _refuse(self, request: Any, code: int, message: str) -> None:
        self._write({"jsonrpc": "2.0", "id": request, "error": {"code": code, "message": message}})

    def _send_response(self, msg_id: Any, result: Any = None, error: Any = None) -> None:
        if error is None and isinstance(result, Encoded):
            self._write_text(f'{{"jsonrpc": "2.0", "id": {json.dumps(msg_id)}, "result": {result.json}}}')
        else:
            super()._send_response(msg_id, result, error)

    def _write(self, message: dict[str, Any]) -> None:
        self._write_text(json.dumps(message))

    def _write_text(self, body: str) -> None:
        data = body.encode("utf-8", "surrogatepass")
        if self.writer is not None:
            self.writer.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Generator[Any, Any, types.InitializeResult]:
        """Adds what pygls 2.1 does not advertise: documents of our own scheme (LSP 3.18)."""
        result = yield from super().lsp_initialize(params)
        if result.capabilities.workspace is not None:
            result.capabilities.workspace.text_document_content = types.TextDocumentContentOptions([SCHEME])
        if not pulls_diagnostics(params.capabilities):
            result.capabilities.diagnostic_provider = None  # else it would ask all the same, and show everything twice
        write_empty_authority(not registers_stage_features(params.capabilities))
        if registers_stage_features(params.capabilities):  # for our scheme alone, not for Python files
            result.capabilities.definition_provider = None
            result.capabilities.references_provider = None
            result.capabilities.document_highlight_provider = None
            result.capabilities.document_symbol_provider = None
            result.capabilities.folding_range_provider = None
        return result


def pulls_diagnostics(capabilities: types.ClientCapabilities) -> bool:
    """Whether a client asks for diagnostics, and can be told to ask again: a run takes seconds."""
    document, workspace = capabilities.text_document, capabilities.workspace
    refresh = workspace.diagnostics if workspace is not None else None
    return (
        document is not None
        and document.diagnostic is not None
        and refresh is not None
        and bool(refresh.refresh_support)
    )


def registers_stage_features(capabilities: types.ClientCapabilities) -> bool:
    """Whether a client can be told that we answer about names in documents of stages, and only there."""
    document = capabilities.text_document
    return document is not None and all(
        feature is not None and bool(feature.dynamic_registration)
        for feature in (
            document.definition,
            document.references,
            document.document_highlight,
            document.document_symbol,
            document.folding_range,
            document.hover,
            document.code_lens,
        )
    )
