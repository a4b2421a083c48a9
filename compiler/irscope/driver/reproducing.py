"""The smallest script that shows what a stored run has: a compile error, a wrong number, or a slow kernel.

It shows it only if it did so in a fresh process.  The graph of an error is made smaller by PyTorch's own minifier.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
from collections.abc import Mapping
from typing import Any

from irscope.internals.failed_programs import minified, repeated
from irscope.pipelines.dynamo_stages import REPRODUCER
from irscope.profiling.changes import stored_profile
from irscope.protocol import Report
from irscope.store.store import Store
from irscope.store.value_file import folder_of
from irscope.system.commands import run_bounded, temporary_folder
from irscope.system.trust import check_trust, to_trust
from irscope.usercode.writing import write_files
from irscope.values.blame.reproducer import DIFFERS, Proof, proven, write_reproducer
from irscope.values.kernel.alone import SLOW, timing_script
from irscope.values.kernel.asking import StoredKernel
from irscope.values.run.reading import divergences
from irscope.vocabulary.records import dataclass

_MINIFY_SECONDS = 120.0
_TOLD = 2000


@dataclass(frozen=True)
class Script:
    """A script that should show something.

    Args:
        kind: ``compile-error``, ``wrong-number`` or ``slow-kernel``.
        text: Of a divergence: as it is in the data of its stage, ``inputs`` is the file that it loads.
        said: What it prints where it shows it.  Empty: the run has nothing to compare it with, and ``why`` says why.
    """

    kind: str
    text: str
    said: str
    inputs: str = ""
    why: str = ""


@dataclass(frozen=True)
class Reproduced:
    """What became of a script: ``shown`` is whether it showed the trouble in a fresh process."""

    kind: str
    path: str
    shown: bool
    message: str


def script_of_run(store: Store, report: Report, compile: str | None) -> Script:
    """For the first compile error or divergence of a run, or of one compile.  Raises LookupError if it has neither."""
    compiles = [each for each in report.compiles if compile in (None, each.id)]
    for stage in (stage for each in compiles for stage in each.stages if stage.name == REPRODUCER.name):
        data = store.stage_data(report.run, stage.id)
        said = str(data.get("error", "")) if isinstance(data, dict) else ""
        return Script(
            "compile-error", store.stage_text(report.run, stage.id), said, why="It ran with an older irscope."
        )
    for id, data in divergences(store, report):
        if any(stage.id == id for each in compiles for stage in each.stages) and (made := data.get("reproducer")):
            return Script("wrong-number", str(made["script"]), DIFFERS, str(made["inputs"]))
    raise LookupError(
        f"Run {report.run} has no compile error of Inductor's and no divergence whose graph stands alone. `irscope diverge "
        "SCRIPT` looks for a wrong number; `irscope profile SCRIPT` and then --kernel NAME: a slow kernel."
    )


def script_of_kernel(store: Store, report: Report, name: str, compile: str | None) -> Script:
    """For a kernel, and the time that it took in the run, if that was measured.  Raises LookupError as `StoredKernel`."""
    stored = StoredKernel(store, report, name, compile)
    profile = stored_profile(store, report.run)
    measured = [each for each in profile.kernels if each.name == stored.kernel.name and each.calls] if profile else []
    seconds = measured[0].seconds / measured[0].calls if measured else None
    why = f"Run {report.run} did not measure {stored.kernel.name}: `irscope profile SCRIPT` does."
    return Script("slow-kernel", timing_script(stored, seconds), SLOW if measured else "", why=why)


def reproduce(
    script: Script,
    path: str,
    store: Store,
    report: Report,
    python: str,
    environment: Mapping[str, str],
    trust: str | None = "",
) -> Reproduced:
    """Writes a script and runs it in a fresh process.

    Args:
        trust: The digest of a script from a run that may be from elsewhere; None: this process has made the run.

    Raises WriteError, and TrustError if the script is not trusted: then it is written and not run.
    """
    folder = folder_of(store.path, report.run)
    _write(script, path, folder)
    if trust is not None and not store.is_made_here(report.run):
        digest = hashlib.sha256(script.text.encode("utf-8", "surrogateescape")).hexdigest()
        how = f"{path} was written and not run: it comes from another store or machine. If you trust it: {to_trust(digest)}"
        check_trust(path, digest, trust, how)
    proof = proven(path, python, environment, script.said)
    if proof.failed and script.kind == "compile-error":
        proof = _smaller(script, path, python, environment) or proof
    return Reproduced(script.kind, path, proof.failed, _message(script, proof))


def _write(script: Script, path: str, folder: str) -> None:
    if script.kind == "wrong-number":
        write_reproducer(path, {"script": script.text, "inputs": script.inputs}, folder)
    else:
        write_files({path: script.text.encode("utf-8", "backslashreplace")})


def _smaller(script: Script, path: str, python: str, environment: Mapping[str, str]) -> Proof | None:
    """Writes a smaller script that shows the same, if the minifier finds one."""
    with temporary_folder() as folder:
        command = [python, path, "minify", "--no-isolate", "--check-str", repeated(script.said)]
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):  # a checkpoint may be there all the same
            run_bounded(command, _MINIFY_SECONDS, patient=True, cwd=folder, env=environment)
        text, trial = minified(script.text, folder), os.path.join(folder, "smaller.py")
        if text is None:
            return None
        write_files({trial: text.encode("utf-8", "backslashreplace")})
        proof = proven(trial, python, environment, script.said)
    if proof.failed:
        write_files({path: text.encode("utf-8", "backslashreplace")})
    return proof if proof.failed else None


def _message(script: Script, proof: Proof) -> str:
    told = proof.output.strip()[-_TOLD:]
    if proof.failed:
        lines = [line for line in told.split("\n") if script.said in line]
        return f"checked: shows it, in a fresh process: {lines[-1].strip()}"
    if not script.said:
        return f"not checked. {script.why}\n{told}"
    cause = (
        ""
        if script.kind == "slow-kernel"
        else " The script itself may cause it, for example with its own pass or lowering."
    )
    return f"does not show it, in a fresh process.{cause}\n{told}"


def written(options: Any, data: Mapping[str, Any] | None, store: Store, report: Report) -> dict[str, Any]:
    """For ``irscope diverge --reproducer``: `reproduce` of the first divergence, as data."""
    if data is None or data["reproducer"] is None:
        why = "No graph differs" if data is None else "No part of the graph differs when it is compiled by itself"
        return {"path": None, "proven": False, "message": f"{why}: no reproducer was written."}
    made = data["reproducer"]
    script = Script("wrong-number", str(made["script"]), DIFFERS, str(made["inputs"]))
    found = reproduce(script, os.path.abspath(options.reproducer), store, report, options.python, os.environ, None)
    return {"path": found.path, "proven": found.shown, "message": found.message}
