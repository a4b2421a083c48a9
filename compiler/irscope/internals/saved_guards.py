"""The guards of a function that ``aot_compile`` has saved, and what they say of the calls that a script makes.

It runs in a separate process, for a file that the user trusts: loading guards unpickles them.  It reads one JSON object
from its standard input, ``{"file", "digest", "script", "arguments"}``, and prints one: ``{"text", "calls"}`` or ``{"error"}``.
The script runs without compile; what it prints goes to standard error.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import os
import runpy
import sys
import types
from collections.abc import Callable
from typing import Any

from irscope.internals.failing_guards import MISSING, failing
from irscope.internals.frames import callers

VERSIONS = "2.13 to 2.14"
_MOST_CALLS = 50
_LONGEST = 40


class _Enough(BaseException):
    """The script has made as many calls as are judged."""


def main(source_of: Callable[[str], str]) -> None:
    """Prints the answer.

    Args:
        source_of: The expression that a guard is about, from PyTorch's words for one that failed; empty if it has none.
    """
    request = json.loads(sys.stdin.read())
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the script prints is not an answer
    try:
        answer = _answer(request, source_of)
    except (Exception, SystemExit) as error:  # noqa: BLE001  an artifact may raise anything
        answer = {"error": f"{type(error).__name__}: {error}".partition("\n")[0]}
    answers.write(json.dumps(answer))
    answers.flush()
    os._exit(0)  # threads of the script may go on


def _answer(request: dict[str, Any], source_of: Callable[[str], str]) -> dict[str, Any]:
    with open(request["file"], "rb") as file:
        data = file.read()
    if hashlib.sha256(data).hexdigest() != request["digest"]:
        return {"error": "the file has changed since it was listed"}
    script = request["script"]
    folder = os.path.dirname(os.path.abspath(script or request["file"]))
    sys.path.insert(0, folder)
    saved = _Saved(data, source_of)
    if script:
        ended = _run(script, request["arguments"], saved)
        return {"text": saved.text, "calls": saved.calls, "ended": ended}
    saved.load({"__builtins__": __builtins__})
    return {"text": saved.text, "calls": [], "ended": ""}


class _Saved:
    """A saved function: its code, and its guards once its globals are there."""

    def __init__(self, data: bytes, source_of: Callable[[str], str]) -> None:
        self._source_of = source_of
        ahead: Any = importlib.import_module("torch._dynamo.aot_compile")
        package: Any = importlib.import_module("torch._dynamo.package")

        class Unpickler(ahead.AOTCompileUnpickler):  # type: ignore[misc]
            def persistent_load(self, key: str) -> Any:
                return None  # of the data that is passed when it is loaded; guards do not read it

        state = Unpickler({}, io.BytesIO(data)).load()
        self._package, self._guards = package, state["guards_state"]
        self.code: types.CodeType = package.SerializedCode.to_code_object(state["original_code"])
        self._manager: Any = None
        self.text = ""
        self.calls: list[dict[str, Any]] = []

    def load(self, scope: dict[str, Any]) -> None:
        """Builds the guards for the globals of the function's module."""
        state = self._package.load_guards_state(self._guards)
        self._manager = self._package.load_guard_manager(state, self.code, scope)
        self.text = str(self._manager)

    def is_of(self, code: types.CodeType) -> bool:
        """Whether a code is the function's, here or where it was made."""
        names = [getattr(one, "co_qualname", one.co_name) for one in (code, self.code)]
        files = [os.path.basename(one.co_filename) for one in (code, self.code)]
        return names[0] == names[1] and files[0] == files[1]

    def judge(self, variables: dict[str, Any], scope: dict[str, Any], frame: types.FrameType | None) -> None:
        """Adds what the guards say of a call."""
        if self._manager is None:
            self.load(scope)

        def value_of(source: str) -> Any:
            try:
                return eval(source, {**scope, "L": variables, "G": scope})
            except Exception:  # noqa: BLE001  PyTorch's own helpers are not there
                return MISSING

        reasons = []
        for reason in failing(self._manager.root, variables, value_of):
            source = self._source_of(reason)
            try:
                now = eval(source, scope, variables) if source else MISSING
            except Exception:  # noqa: BLE001  it has no name in the script
                now = MISSING
            is_plain = isinstance(now, (bool, int, float, str, type(None)))
            reasons.append([reason, repr(now)[:_LONGEST] if is_plain else ""])
        holds = bool(self._manager.check(variables))
        file, line = (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("", 0)
        self.calls.append({"file": file, "line": line, "reasons": reasons, "holds": holds})
        if len(self.calls) >= _MOST_CALLS:
            raise _Enough


def _run(script: str, arguments: list[str], saved: _Saved) -> str:
    """Runs the script, and judges each call of the function.  Returns the exception that ended it, if one did."""
    torch: Any = importlib.import_module("torch")
    ahead: Any = importlib.import_module("torch._dynamo.aot_compile")
    own = os.path.dirname(os.path.abspath(torch.__file__))
    call_of = ahead.AOTCompiledFunction.__call__
    wrapper: Any = importlib.import_module("torch._dynamo.eval_frame").OptimizedModule

    def caller(frame: types.FrameType | None) -> types.FrameType | None:
        while frame is not None and (frame.f_code.co_filename.startswith(own) or frame.f_code.co_filename == __file__):
            frame = frame.f_back
        return frame

    def profile(frame: types.FrameType, event: str, _: Any) -> None:
        # The wrapper that torch.compile makes of a module is called by the same code as the module in it.
        if event == "call" and saved.is_of(frame.f_code) and not isinstance(frame.f_locals.get("self"), wrapper):
            sys.setprofile(None)
            try:
                saved.judge(dict(frame.f_locals), frame.f_globals, caller(frame.f_back))
            finally:
                sys.setprofile(profile)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if saved.is_of(self._artifacts.original_code):
            sys.setprofile(None)
            saved.judge(self.prepare_f_locals(*args, **kwargs), self.fn.__globals__, caller(next(callers(), None)))
            sys.setprofile(profile)
        return call_of(self, *args, **kwargs)

    ahead.AOTCompiledFunction.__call__ = call
    torch.compiler.set_stance("force_eager")
    sys.argv = [script, *arguments]
    sys.setprofile(profile)
    try:
        runpy.run_path(script, run_name="__main__")
    except _Enough:
        pass
    except SystemExit as end:
        return "" if not end.code else f"SystemExit: {end.code}"
    except Exception as error:  # noqa: BLE001  a guard that fails raises; the calls before count
        return f"{type(error).__name__}: {error}".partition("\n")[0]
    finally:
        sys.setprofile(None)
    return ""
