"""The guards of a saved function, loaded for one file that the user trusts, in a separate process."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from typing import Any

from irscope.driver.debuggers import without_debugger
from irscope.ir.artifacts.contents import Artifact, Guard
from irscope.ir.guard_text import FailedGuard, parse_failed_guard, readable, since_made
from irscope.ir.guards import guards_of
from irscope.opening.fitting import Difference, Fit, of_guards
from irscope.protocol import Compile, CompileOutcome
from irscope.system.commands import run_bounded
from irscope.system.trust import TrustError, check_trust
from irscope.vocabulary.units import count

_BOOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "boot.py")
_SECONDS = 600.0


def judge(artifact: Artifact, trusted: str, script: str, found: Fit) -> Fit:
    """Loads the guards into ``artifact.guards``, and adds what they say of the calls that a script makes.

    Args:
        trusted: The digest of the file that the user trusts, or a prefix of it.
        script: The script and its arguments, as in a shell.  Empty: the guards are only listed.

    Raises TrustError.
    """
    check_trust(artifact.path, artifact.digest, trusted)
    if not artifact.guards:
        raise TrustError(f"{artifact.path} ({artifact.kind}) has no guards. Nothing was loaded.")
    answer = _asked(artifact, shlex.split(script))
    left = [text for text in found.not_compared if text != of_guards(artifact)]
    artifact.guards[:] = _listed(artifact, answer["text"]) or artifact.guards
    calls = answer["calls"]
    if not calls:
        why = (
            f"the script does not call the function ({answer['ended'] or 'it ended well'})"
            if script
            else "give --script"
        )
        return Fit(found.differences, found.compared, (*left, f"{count(len(artifact.guards), 'guard')}: {why}"))
    differences = list(found.differences)
    for call in calls:
        for reason, now in call["reasons"]:
            difference = _difference(artifact, parse_failed_guard(reason), now, (call["file"], call["line"]))
            if difference not in differences:
                differences.append(difference)
        if not call["holds"] and not call["reasons"]:
            differences.append(Difference("A guard fails in this call.", call["file"], call["line"]))
    compared = f"{count(len(artifact.guards), 'guard')} with {count(len(calls), 'call')} of the script"
    return Fit(tuple(differences), (*found.compared, compared), tuple(left))


def _asked(artifact: Artifact, script: list[str]) -> dict[str, Any]:
    request = {
        "file": os.path.abspath(artifact.path),
        "digest": artifact.digest,
        "script": script[0] if script else "",
        "arguments": script[1:],
    }
    try:
        done = run_bounded(
            [sys.executable, _BOOT, "guards"], _SECONDS, text=json.dumps(request), env=without_debugger(os.environ)
        )
        answer = json.loads(done.stdout)
    except subprocess.TimeoutExpired as error:
        raise TrustError(
            f"The process that judges the guards took longer than {_SECONDS:.0f} s and was ended."
        ) from error
    except (OSError, ValueError) as error:
        last = done.stderr.strip().splitlines()[-1:] if isinstance(error, ValueError) else [str(error)]
        raise TrustError(f"The guards cannot be loaded: {''.join(last) or 'their process has ended'}.") from error
    if "error" in answer:
        raise TrustError(f"The guards cannot be loaded here: {answer['error']}.")
    return dict(answer)


def _listed(artifact: Artifact, text: str) -> list[Guard]:
    """The guards as PyTorch checks them, by the user's lines."""
    files = {file for _, file, _ in artifact.functions} | {guard.file for guard in artifact.guards}
    compiles = [Compile("0/0", "", file, 0, CompileOutcome.COMPILED, 0, 0, 0.0) for file in sorted(files)]
    rows = guards_of(compiles[0], text, compiles).guards if compiles else ()
    guards: dict[tuple[str, str, str, int], tuple[str, ...]] = {}
    for row in rows:
        place = (row.origin.file, row.origin.line) if row.origin else ("", 0)
        key = (row.kind, row.source, *place)
        guards[key] = (*guards.get(key, ()), row.check)
    found = [Guard(kind, source, checks, file, line) for (kind, source, file, line), checks in guards.items()]
    return sorted(found, key=lambda guard: (not guard.line, guard.file, guard.line))


def _difference(artifact: Artifact, failed: FailedGuard, now: str, call: tuple[str, int]) -> Difference:
    watched = (
        failed.source.removeprefix("len(").removesuffix(")") if failed.source.startswith("len(") else failed.source
    )
    places = ((guard.file, guard.line) for guard in artifact.guards if guard.line and readable(guard.source) == watched)
    place = next(places, call)
    return Difference(f"{since_made(failed, now)}.", *place)
