"""Which message goes to which room."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from irscope.driver.availability import availability_of, trials_file
from irscope.pipelines.registry import pipelines as known_pipelines
from irscope.store.store import StoreError
from irscope.system.commands import run_bounded
from lsprotocol import types

from irscope_server.app import requests
from irscope_server.app.comparing import compare
from irscope_server.app.opening import open_trace
from irscope_server.app.profiling import profile
from irscope_server.app.server import IrscopeServer
from irscope_server.base import wire
from irscope_server.base.archive import Archive
from irscope_server.base.context import ReadContext
from irscope_server.base.messages import Encoded, RequestFailed, registers_stage_features
from irscope_server.base.params import PARAMS, CheckParams, PipelinesParams, RunParams, TrustedParams, UriParams
from irscope_server.base.results import PipelinesResult
from irscope_server.base.settings import SECTION
from irscope_server.graph import requests as graph_requests
from irscope_server.language.fixes import (
    CHECK_WITHOUT_COMPILE,
    actions_at,
)
from irscope_server.language.hovers import hover_at
from irscope_server.language.inlay_hints import inlay_hints_of
from irscope_server.language.lenses import lenses_of, stage_lenses
from irscope_server.language.regions import regions
from irscope_server.language.time_lenses import time_lenses
from irscope_server.panels.findings import FindingsParams, findings
from irscope_server.panels.requests import REQUESTS
from irscope_server.running.runs import Execute
from irscope_server.stages import features as stage_features
from irscope_server.stages import linked

_one_at_a_time = asyncio.Lock()
"""Two lists that are open at once do not try the same pipelines twice."""


async def pipelines(server: IrscopeServer, params: PipelinesParams) -> PipelinesResult:
    """All pipelines, and whether each works in the interpreter that runs a document.

    No process is started while the workspace is not trusted.
    """
    if not server.trusted:
        raise ValueError("The workspace is not trusted, so its interpreter is not asked which pipelines work.")
    settings = await server.settings_for(params.uri) if params.uri else server.settings
    document = server.document(params.uri) if params.uri else None
    plan = await server.activity.plan(document) if document is not None else None
    python = plan.python if plan else settings.interpreter
    listed = [pipeline for pipeline in known_pipelines().values() if not params.only or pipeline.name in params.only]
    # What is known is said at once: the trial of a list that was closed may take minutes.
    async with _one_at_a_time if params.trials else contextlib.nullcontext():
        available = await asyncio.to_thread(availability_of, listed, python, trials_file(), with_trials=params.trials)
    return PipelinesResult(python, settings.pipeline, tuple(available))


def make_server(execute: Execute | None = None) -> IrscopeServer:
    """A server with all its features."""
    server = IrscopeServer(execute)
    for method, handler in _FEATURES.items():
        server.feature(method, _OPTIONS.get(method))(handler)
    server.command("irscope.server.run")(_run_command)
    server.command("irscope.server.cancel")(_cancel_command)
    server.command(CHECK_WITHOUT_COMPILE)(_check_command)
    return server


def _initialize(ls: IrscopeServer, params: types.InitializeParams) -> None:
    ls.options = params.initialization_options
    if isinstance(ls.options, dict):
        ls.trusted = ls.options.get("trusted", True) is not False
        ls.rich_hovers = ls.options.get("richHovers") is True
    ls.settings = ls.read_options(ls.options)
    ls.archive = Archive(ls.settings.store)


async def _initialized(ls: IrscopeServer, params: types.InitializedParams) -> None:
    workspace = ls.client_capabilities.workspace
    if workspace and workspace.did_change_configuration and workspace.did_change_configuration.dynamic_registration:
        method = types.WORKSPACE_DID_CHANGE_CONFIGURATION
        options = types.DidChangeConfigurationRegistrationOptions(section=SECTION)
        registration = types.Registration("irscope-configuration", method, options)
        ls.in_background(ls.client_register_capability_async(types.RegistrationParams([registration])))
    if registers_stage_features(ls.client_capabilities):
        ls.in_background(ls.client_register_capability_async(types.RegistrationParams(stage_features.registrations())))
    if sys.pycache_prefix is not None:
        ls.in_background(asyncio.to_thread(_compile_debug_adapter, sys.pycache_prefix))
    await ls.load_settings()
    ls.notices.tell()


def _compile_debug_adapter(prefix: str) -> None:
    """Has Python compile the modules of the debug adapter where an editor keeps them: most of what its first start takes."""
    imports = f"import sys; sys.path[:] = {sys.path!r}; import irscope_server.dap.protocol.serve"
    run_bounded([sys.executable, "-I", "-S", "-X", f"pycache_prefix={prefix}", "-c", imports], 60, patient=True)


async def _did_change_configuration(ls: IrscopeServer, params: types.DidChangeConfigurationParams) -> None:
    given = params.settings.get(SECTION) if isinstance(params.settings, dict) else None
    await ls.load_settings(given)
    await ls.activity.settings_changed()


def _did_open(ls: IrscopeServer, params: types.DidOpenTextDocumentParams) -> None:
    document = ls.document(params.text_document.uri)
    is_python = params.text_document.language_id == "python"
    if document is not None and (is_python or document.path.endswith((".py", ".pyw"))):
        ls.remember_open(document.uri, document.path)
        ls.proofs.looks_at(document.key, 1)
        ls.activity.opened(document)


def _did_change(ls: IrscopeServer, params: types.DidChangeTextDocumentParams) -> None:
    ls.texts.changed()
    ls.activity.changed()


def _did_save(ls: IrscopeServer, params: types.DidSaveTextDocumentParams) -> None:
    document = ls.document(params.text_document.uri)
    if document is not None and ls.is_open(document.key):
        ls.texts.changed()
        ls.activity.saved(document)


def _did_close(ls: IrscopeServer, params: types.DidCloseTextDocumentParams) -> None:
    document = ls.document(params.text_document.uri)
    if document is not None and ls.is_open(document.key):
        ls.remember_closed(document.path)
        ls.activity.closed(document.key)


def _notebook_opened(ls: IrscopeServer, params: types.DidOpenNotebookDocumentParams) -> None:
    document = ls.document(params.notebook_document.uri)
    if document is not None and ls.notebooks.opened(params) is not None:
        ls.activity.opened(document)


def _notebook_changed(ls: IrscopeServer, params: types.DidChangeNotebookDocumentParams) -> None:
    if ls.notebooks.changed(params) is not None:
        ls.activity.changed()


def _notebook_saved(ls: IrscopeServer, params: types.DidSaveNotebookDocumentParams) -> None:
    document = ls.document(params.notebook_document.uri)
    if document is not None and ls.is_open(document.key):
        ls.activity.saved(document)


def _notebook_closed(ls: IrscopeServer, params: types.DidCloseNotebookDocumentParams) -> None:
    document = ls.document(params.notebook_document.uri)
    if document is not None and ls.notebooks.closed(document.uri) is not None:
        ls.activity.closed(document.key)


async def _code_lens(ls: IrscopeServer, params: types.CodeLensParams) -> list[types.CodeLens] | None:
    document = ls.document(params.text_document.uri)
    if document is None:
        return await stage_lenses(ls, params.text_document.uri)
    lenses, key = lenses_of(ls, document), document.key
    return [*lenses, *time_lenses(ls, key, await ls.profiles.touching(key))]


async def _hover(ls: IrscopeServer, params: types.HoverParams) -> types.Hover | None:
    document = ls.document(params.text_document.uri)
    return await (hover_at(ls, document.key, params.position) if document else stage_features.hover(ls, params))


async def _inlay_hint(ls: IrscopeServer, params: types.InlayHintParams) -> list[types.InlayHint] | None:
    document = ls.document(params.text_document.uri)
    return await inlay_hints_of(ls, document, params.range) if document else None


async def _code_action(ls: IrscopeServer, params: types.CodeActionParams) -> list[types.CodeAction] | None:
    document = ls.document(params.text_document.uri)
    if document is None:
        return None
    ls.proofs.looks_at(document.key, params.range.start.line + 1)
    return actions_at(ls, document.key, params)


async def _document_diagnostic(
    ls: IrscopeServer, params: types.DocumentDiagnosticParams
) -> types.DocumentDiagnosticReport:
    return await ls.publisher.document_report(params)


async def _workspace_diagnostic(
    ls: IrscopeServer, params: types.WorkspaceDiagnosticParams
) -> types.WorkspaceDiagnosticReport:
    return await ls.publisher.workspace_report(params)


def _progress_cancel(ls: IrscopeServer, params: types.WorkDoneProgressCancelParams) -> None:
    ls.activity.cancel_by_token(params.token)
    ls.measurements.cancel_by_token(params.token)


def _shutdown(ls: IrscopeServer, params: None) -> None:
    ls.workers.stop()
    ls.measurements.close()
    ls.proofs.close()
    for run in ls.runs.all():
        run.cancel()


def _trusted(ls: IrscopeServer, params: TrustedParams) -> None:
    ls.trusted = params.trusted
    ls.activity.trust_changed()


def _request(work: Callable[[IrscopeServer, Any], Any]) -> Callable[[IrscopeServer, Any], Awaitable[Any]]:
    """A handler of one of irscope's own requests: what it gives as it goes over the wire, what it raises as an answer."""

    async def handle(ls: IrscopeServer, params: Any) -> Any:
        try:
            result = work(ls, params)
            if inspect.isawaitable(result):
                result = await result
        except (LookupError, ValueError, StoreError) as error:
            raise RequestFailed(str(error.args[0] if error.args else error)) from None
        return result if isinstance(result, Encoded) else wire.to_wire(result)

    return handle


async def read(context: ReadContext, method: str, params: Any) -> Any:
    """The result of one of irscope's own requests that only read, as it goes over the wire.

    Raises KeyError if it is not a request, BadParams and RequestFailed.
    """
    return await _FEATURES[method](context, wire.from_wire(PARAMS[method], params))


def _stage_feature(work: Callable[[IrscopeServer, Any], Awaitable[Any]]) -> Callable[[IrscopeServer, Any], Any]:
    """pygls tells a handler that wants the server by the name of its first parameter."""

    async def handle(ls: IrscopeServer, params: Any) -> Any:
        return await work(ls, params)

    return handle


def _findings(ls: IrscopeServer, params: FindingsParams) -> Awaitable[Encoded]:
    tried = functools.partial(ls.proofs.of_finding, params.run)
    return findings(ls, params, ls.controls.hidden, ls.controls.severities, tried)


def _text_document_content(ls: IrscopeServer, params: types.TextDocumentContentParams) -> Awaitable[Any]:
    return requests.text_of_document(ls, UriParams(params.uri))


async def _run_command(ls: IrscopeServer, params: dict[str, Any]) -> Any:
    return await _request(lambda ls, params: requests.run(ls, wire.from_wire(RunParams, params)))(ls, params)


async def _cancel_command(ls: IrscopeServer, params: dict[str, Any]) -> Any:
    return await _request(lambda ls, params: requests.cancel(ls, wire.from_wire(UriParams, params)))(ls, params)


async def _check_command(ls: IrscopeServer, params: dict[str, Any]) -> Any:
    work = requests.check_without_compile
    return await _request(lambda ls, params: work(ls, wire.from_wire(CheckParams, params)))(ls, params)


_FEATURES: dict[str, Any] = {
    types.INITIALIZE: _initialize,
    types.INITIALIZED: _initialized,
    types.SHUTDOWN: _shutdown,
    types.WORKSPACE_DID_CHANGE_CONFIGURATION: _did_change_configuration,
    types.TEXT_DOCUMENT_DID_OPEN: _did_open,
    types.TEXT_DOCUMENT_DID_CHANGE: _did_change,
    types.TEXT_DOCUMENT_DID_SAVE: _did_save,
    types.TEXT_DOCUMENT_DID_CLOSE: _did_close,
    types.NOTEBOOK_DOCUMENT_DID_OPEN: _notebook_opened,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE: _notebook_changed,
    types.NOTEBOOK_DOCUMENT_DID_SAVE: _notebook_saved,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE: _notebook_closed,
    types.TEXT_DOCUMENT_CODE_LENS: _code_lens,
    types.TEXT_DOCUMENT_CODE_ACTION: _code_action,
    types.TEXT_DOCUMENT_HOVER: _hover,
    types.TEXT_DOCUMENT_INLAY_HINT: _inlay_hint,
    types.TEXT_DOCUMENT_DIAGNOSTIC: _document_diagnostic,
    types.WORKSPACE_DIAGNOSTIC: _workspace_diagnostic,
    types.WORKSPACE_TEXT_DOCUMENT_CONTENT: _request(_text_document_content),
    types.WINDOW_WORK_DONE_PROGRESS_CANCEL: _progress_cancel,
    "irscope/trusted": _trusted,
    "irscope/runs": _request(requests.runs),
    "irscope/pipelines": _request(pipelines),
    "irscope/report": _request(requests.report),
    "irscope/run": _request(requests.run),
    "irscope/cancel": _request(requests.cancel),
    "irscope/checkWithoutCompile": _request(requests.check_without_compile),
    "irscope/compare": _request(compare),
    "irscope/profile": _request(profile),
    "irscope/openTrace": _request(open_trace),
    "irscope/entries": _request(requests.entries),
    "irscope/kernelsAt": _request(requests.kernels_at),
    "irscope/stagesOf": _request(requests.stages),
    "irscope/graph": _request(graph_requests.graph),
    "irscope/graphKernels": _request(graph_requests.graph_kernels),
    "irscope/document": _request(requests.text_of_document),
    "irscope/regions": _request(regions),
    "irscope/linkedLines": _request(linked.linked_lines),
    "irscope/counterparts": _request(linked.counterparts),
    **{method: _stage_feature(work) for method, work in stage_features.METHODS.items()},
    **{method: _request(panel.work) for method, panel in REQUESTS.items()},
    "irscope/findings": _request(_findings),  # it needs the user's settings, too
}

PARAMS.update({method: panel.params for method, panel in REQUESTS.items()})

_OPTIONS: dict[str, Any] = {
    types.TEXT_DOCUMENT_CODE_ACTION: types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix]),
    types.TEXT_DOCUMENT_CODE_LENS: types.CodeLensOptions(resolve_provider=False),
    types.TEXT_DOCUMENT_INLAY_HINT: types.InlayHintOptions(resolve_provider=False),
    types.TEXT_DOCUMENT_DIAGNOSTIC: types.DiagnosticOptions(
        inter_file_dependencies=True, workspace_diagnostics=True, identifier="irscope"
    ),
}
