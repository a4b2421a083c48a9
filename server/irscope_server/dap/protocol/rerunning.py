"""``attach`` with ``values``: the script of a stored run is run once more, if it still is what it was.

The store tells what to run, in which folder and with which arguments; interpreter and variables are the client's.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from irscope.driver.driver import RunSpec, interpreter_path
from irscope.protocol import EntryKind, Lane, OutcomeKind, RunSummary, ValuesRequest
from irscope.store.store import Store
from irscope.usercode.source import digest_of
from irscope.values.run.reading import divergences, stored_values

from irscope_server.dap.engine.recording import Recording
from irscope_server.dap.protocol.wire import Arguments, RequestFailed

_MOST_NAMED = 5
_MOST_RUNS = 30
"""Of a script, the newest, among which one that is the same is looked for."""
_KINDS = [kind.value for kind in EntryKind]
_RUN_ELSEWHERE = {
    EntryKind.NOTEBOOK.value: "it is a run of a notebook, whose cells the editor runs: launch it there",
    # its expressions are not kept: a store is not trusted
    EntryKind.MODEL.value: "it is a run of irscope run --model: run it on the command line again",
}


def values_are_there(recording: Recording, wanted: ValuesRequest) -> bool:
    """Whether the run was a value run of this kind: then nothing has to run."""
    if wanted.inputs or wanted.compile or wanted.call != 1 or wanted.stage != "all":
        return False
    compared = divergences(recording.store, recording.report)
    return bool(stored_values(recording.store, recording.report)) and (bool(compared) or not wanted.divergence)


def spec_of(recording: Recording, wanted: ValuesRequest, arguments: Arguments) -> RunSpec:
    """How a stored run is run again as a value run.

    Raises RequestFailed with what speaks against it: a changed text, or too little that is known about the run.
    """
    run = recording.report.run
    how, digest = recording.store.how_run(run)
    target, cwd, entry = how.get("target"), how.get("cwd"), how.get("entry")
    args, variables = how.get("args"), how.get("variables")
    script_digest = None
    if entry == EntryKind.SCRIPT.value:
        script_digest = digest
        target = recording.report.script  # as it was typed it may begin in an unknown folder
    if (
        entry not in _KINDS
        or not (isinstance(target, str) and isinstance(cwd, str))
        or not (isinstance(args, list) and isinstance(variables, list))
    ):
        raise _refused(
            run, "the store does not record how it was run (an older irscope wrote it): launch the script instead"
        )
    if entry in _RUN_ELSEWHERE:
        raise _refused(run, _RUN_ELSEWHERE[entry])
    changed = _changed(recording, how.get("files"), script_digest)
    if changed:
        raise _refused(run, _other_texts(changed))
    if not os.path.isdir(cwd):
        raise _refused(run, f"its working folder {cwd} is gone")
    given = arguments.variables("env")
    if missing := [str(name) for name in variables if name not in given]:
        raise _refused(run, f'it had variables whose values are not kept; give them as "env": {", ".join(missing)}')
    return RunSpec(
        target, tuple(str(word) for word in args), Lane.DEEP,
        python=os.path.expanduser(arguments.text("python", "")) or sys.executable, cwd=cwd, env=given or None,
        entry=EntryKind(entry), values=wanted, pipeline=recording.report.pipeline,
    )  # fmt: skip


def same_run(store: Store, spec: RunSpec) -> RunSummary | None:
    """The newest run that came to its end and would be the same as a launch: the same texts of all the user's files,
    arguments, folder, interpreter and pipeline, and no variables, whose values are not kept."""
    if spec.values is not None or spec.env or spec.targets:
        return None
    no_variables: list[str] = []
    wanted = (list(spec.args), os.path.abspath(spec.cwd or os.getcwd()), interpreter_path(spec), no_variables)
    for run in store.runs(_MOST_RUNS, os.path.abspath(spec.script)):
        how, digest = store.how_run(run.run)
        is_whole = run.outcome is not None and run.outcome.kind is OutcomeKind.COMPLETED and run.compiles > 0
        if not is_whole or (run.lane, run.pipeline) != (Lane.DEEP, spec.pipeline) or how.get("files") is None:
            continue
        if (how.get("args"), how.get("cwd"), how.get("python"), how.get("variables")) == wanted:
            recording = Recording(store, run.run)
            other = any(compile.target for compile in recording.report.compiles)
            return None if other or _changed(recording, how["files"], digest) else run
    return None


def _changed(recording: Recording, files: Any, script: str | None) -> list[str]:
    """The files of the run whose texts have changed, or are gone; ``script``: the digest of its script's."""
    then = {str(path): str(digest) for path, digest in files.items()} if isinstance(files, dict) else {}
    then |= {path: digest_of(text) for path, text in recording.sources.items()}
    then |= {recording.report.script: script} if script is not None else {}
    now = {path: recording.text_as_it_is(path) for path in then}
    return [path for path, text in now.items() if text is None or digest_of(text) != then[path]]


def _other_texts(changed: list[str]) -> str:
    more = f" and {len(changed) - _MOST_NAMED} more" if len(changed) > _MOST_NAMED else ""
    gone = [path for path in changed if not os.path.isfile(path)]
    what = "is gone" if gone == changed else "has changed" if len(changed) == 1 else "have changed"
    return f"{', '.join(changed[:_MOST_NAMED])}{more} {what}"


def _refused(run: str, why: str) -> RequestFailed:
    return RequestFailed(f"Run {run} cannot be run again for its values: {why}.", show=True)
