"""What a script computes, as evidence that a change of its text is a right one.

Two runs are compared: one of the original without compile writes its evidence, and one of the changed script, compiled,
compares its own with that.  Each compiled program gives: the results of its calls in the script; what it gives after the
script on the inputs of its first call and on disturbed ones, from the same random numbers, with the gradients; what it
changes of its inputs; and the parameters, the buffers and the changed numbers of its module at the end.

A program that is called by a plain function which calls nothing else that is compiled (a decorator that pads sizes, a loop)
is looked at from outside, under the name of that function: with its inputs and results.

The file is written and read by the two processes of the user's interpreter alone, as plain tensors (``weights_only``).
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import os
import pickle
import sys
from typing import Any

from irscope.internals import random_seeds
from irscope.internals.compile_calls import caller_hook, result_hook
from irscope.internals.hooks import Hook
from irscope.internals.refusals import refusal_hook
from irscope.internals.truths import truth_hook
from irscope.protocol import FoundEvidence, NotHeldBack, OneSided, to_json
from irscope.runner import draws
from irscope.runner.attributes import Attributes, attributes_of
from irscope.runner.calls import SEED, called, kept_numbers, raised, small, state_of
from irscope.runner.compared import AT_END, compared, differences, settled, settled_at_end, unsteady_places
from irscope.runner.descriptors import silent
from irscope.runner.kept_state import imported_files
from irscope.runner.leaves import DISTURBANCES, leaves, numbers_in
from irscope.runner.rounds import Measured
from irscope.runner.tensors import Program, cloned
from irscope.runner.used_state import environment_changed, names_used, state_at_the_end
from irscope.usercode.user_files import is_package_file, is_user_file

REFERENCE, ANSWER, REFUSALS = "reference.pt", "answer.json", "refusals.jsonl"
_MOST_REFUSALS = 2000
_MOST_CALLS = 8
"""The most calls of a program whose results are kept."""
_MOST_PROGRAMS = 64
_MOST_LINES = 4096
"""The most lines that decide by a tensor."""


class _Around:
    """A call of a plain function around compiled ones, and the program that was called in it first."""

    def __init__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.function = function
        self.args, self.kwargs = cloned((args, kwargs))
        self.program: Measured | None = None
        self.name = ""


class Evidence:
    """Takes the place of `irscope.runner.rounds.Rounds`: notes the programs of a script, and looks at them at its end.

    Args:
        folder: Holds ``reference.pt`` if there is something to compare with; else this run writes it.  Gets
            ``answer.json``, and ``refusals.jsonl`` with the graph breaks and where in Dynamo each was raised.
        calls_again: Whether the programs are called once more after the script.  In the deep lane that may compile
            more, which is not the script's.
        without_compile: Whether nothing is compiled.  Then it is also noted which way the code decides by the values of
            tensors, and the programs are also called with random numbers near the ends of their range.
        not_held_back: What the run could do to the outside, as a trial.
        steps: The script ends after so many calls of the program that is called first; 0: by itself.
    """

    def __init__(
        self,
        folder: str,
        calls_again: bool = True,
        without_compile: bool = False,
        not_held_back: tuple[NotHeldBack, ...] = (),
        steps: int = 0,
    ) -> None:
        self._steps = steps
        self._folder, self._calls_again = folder, calls_again
        self._unsteady: list[tuple[str, str, bool]] = []
        self._numbers: dict[str, list[str]] = {}
        self._reference = os.path.join(folder, REFERENCE)
        self._programs: list[Measured] = []
        self._results: dict[str, dict[str, Any]] = {}
        self._answer = FoundEvidence(not_held_back=not_held_back)
        self._around: list[_Around] = []
        self._names: dict[int, str] = {}
        self._attributes: dict[int, Attributes | None] = {}
        self._over = False
        self._refusals = 0
        self._without_compile = without_compile
        self._answers: dict[tuple[str, int], set[bool]] = {}
        self._environment = dict(os.environ)
        self._used: dict[str, list[str]] = {}

    def hooks(self) -> list[Hook]:
        """What sees the programs, and what makes the random numbers of both runs the same."""
        return [
            *random_seeds.hooks(SEED),
            result_hook(self._see),
            caller_hook(self._see_caller),
            refusal_hook(self._refused),
            *([truth_hook(self._decided)] if self._without_compile else []),
        ]

    def _decided(self, file: str, line: int, answer: bool) -> None:
        if len(self._answers) < _MOST_LINES and (is_user_file(file) or is_package_file(file)):
            self._answers.setdefault((file, line), set()).add(answer)

    def _refused(self, gb_type: str, functions: list[str], places: list[str]) -> None:
        """Written at once: the script may fail for it."""
        if self._refusals < _MOST_REFUSALS and not self._over:
            self._refusals += 1
            with open(os.path.join(self._folder, REFUSALS), "a", encoding="utf-8") as file:
                file.write(json.dumps({"gb_type": gb_type, "functions": functions, "places": places}) + "\n")

    # --- while the script runs ----------------------------------------------------------------------------------------

    def _see(self, program: Program, compiled: Any) -> Any:
        torch: Any = sys.modules["torch"]
        if len(self._programs) >= _MOST_PROGRAMS or _is_operator(program):
            return compiled
        name = f"{_name(program)}#{len(self._programs)}"
        one = Measured(program, compiled, (), {}, False, False)
        self._programs.append(one)
        if isinstance(compiled, torch.nn.Module):
            compiled.register_forward_pre_hook(
                lambda module, args, kwargs: self._begin(name, one, args, kwargs), with_kwargs=True
            )
            compiled.register_forward_hook(lambda module, args, result: self._keep(name, one, result))
            return compiled

        @functools.wraps(compiled)
        def called(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling():  # a part of a program that is noted already
                return compiled(*args, **kwargs)
            self._begin(name, one, args, kwargs)
            try:
                result = compiled(*args, **kwargs)
            except Exception as error:
                self._keep(name, one, error)
                raise
            self._keep(name, one, result)
            return result

        if hasattr(compiled, "aot_compile"):
            called.aot_compile = lambda inputs: self._see_saved(program, compiled.aot_compile(inputs))  # type: ignore[attr-defined]
        return called

    def _see_saved(self, program: Program, saved: Any) -> Any:
        """What ``aot_compile`` returns, whose calls are those of a program."""
        kind = type(saved)
        called = self._see(program, functools.partial(kind.__call__, saved))
        saved.__class__ = type(kind.__name__, (kind,), {"__call__": lambda _, *args, **kwargs: called(*args, **kwargs)})
        return saved

    def _see_caller(self, function: Any) -> Any:
        torch: Any = sys.modules["torch"]

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or self._over:
                return function(*args, **kwargs)
            around = _Around(function, args, kwargs)
            self._around.append(around)
            try:
                result = function(*args, **kwargs)
            finally:
                self._around.pop()
            if around.program is not None:
                self._keep(around.name, around.program, result)
            return result

        return called

    def _begin(self, name: str, one: Measured, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        torch: Any = sys.modules["torch"]
        if torch.compiler.is_compiling() or self._over:
            return
        around = self._around[-1] if self._around else None
        if around is not None and around.program is one and id(one) in self._names:
            return  # a turn of a loop in the function that has the program's name: calls of that one are counted
        if around is not None and around.program is None:
            written = inspect.unwrap(around.function)
            if not one.calls and "<locals>" not in getattr(written, "__qualname__", "<locals>"):  # no decorator's
                self._names[id(one)] = f"{written.__name__}#{name.rpartition('#')[2]}"
            around.program, around.name = one, self._names.get(id(one), name)
            if not one.calls:
                one.compiled, args, kwargs = around.function, around.args, around.kwargs
        if not one.calls:
            one.args, one.kwargs = cloned((args, kwargs))
            self._attributes[id(one)] = attributes_of(one.program)
            one.grad, one.inference = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
        if self._steps and one.calls == self._steps:
            raise SystemExit(0)
        one.calls += 1

    def _keep(self, name: str, one: Measured, result: Any) -> None:
        if sys.modules["torch"].compiler.is_compiling() or self._over:
            return
        if self._around and self._around[-1].program is one:
            return  # what the function around it returns is kept
        if one.calls <= _MOST_CALLS:
            found = {"raised": raised(result)} if isinstance(result, Exception) else small(leaves(result))
            self._results[f"{name}: result of call {one.calls}"] = found

    # --- after it -----------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Calls the programs on the inputs of their first calls and on others, while the backend is still replaced."""
        if "torch" not in sys.modules:
            return
        named = [
            (self._names.get(id(one), f"{_name(one.program)}#{number}"), one)
            for number, one in enumerate(self._programs)
            if one.calls
        ]
        for name, one in named:
            state = {key: value.detach().clone() for key, value in state_of(one.program).items()}
            self._results[f"{name}: parameters and buffers at the end"] = small(leaves(state))
            attributes = self._attributes.get(id(one))
            if attributes is not None:
                self._results[f"{name}: numbers at the end"] = kept_numbers(attributes)
            self._used[name] = names_used(one.program)
            also = self._original[3].get(name, ()) if self._original is not None else ()
            self._results[f"{name}: {AT_END}"] = small(state_at_the_end(one.program, [one.args, one.kwargs], also))
            self._results[f"{name}: environment at the end"] = environment_changed(self._environment, dict(os.environ))
        self._over = True
        if not self._calls_again:
            return
        with silent(), contextlib.suppress(SystemExit):
            for name, one in named:
                self._call(name, one)

    def _call(self, name: str, one: Measured) -> None:
        self._numbers[name] = numbers_in([one.args, one.kwargs])
        fixed = self._original[2].get(name, ()) if self._original is not None else ()
        for number, (how, change) in enumerate(DISTURBANCES.items()):
            self._results[f"{name}: {how}"] = called(one, change, number, fixed=fixed)
        first, again = self._results[f"{name}: {next(iter(DISTURBANCES))}"], called(one, None)
        unsteady = unsteady_places(first, again)
        self._unsteady += [(name, place, is_clock) for place, is_clock in unsteady.items()]
        if differences({"": settled(unsteady, first)}, {"": settled(unsteady, again)}):
            self._answer.unstable += (name,)
        for how in draws.PUSHED if self._without_compile else ():
            self._results[f"{name}: {how}"] = called(one, None, pushed=how)

    def serve(self) -> None:
        """Writes the evidence, or what compares differently with that of the other run."""
        torch: Any = sys.modules.get("torch")
        answer = self._answer
        if torch is None or not self._results:
            answer.problem = "the script called no program that it had passed to torch.compile"
        elif self._original is None and os.path.exists(self._reference):
            answer.problem = "what the original computes has objects of a type that cannot be read back"
        elif self._original is None:
            torch.save([self._results, self._unsteady, self._numbers, self._used], self._reference)
        else:
            expected, unsteady, *_ = self._original
            compared(self._comparable(expected, unsteady), self._comparable(self._results, unsteady), answer)
            answer.clocks = sum(is_clock for _, _, is_clock in unsteady)
            answer.file, answer.line = self._place(answer.differences[0]) if answer.differences else ("", 0)
        answer.files = imported_files()[:_MOST_LINES] if self._without_compile else ()
        answer.one_sided = tuple(OneSided(*at, *each) for at, each in self._answers.items() if len(each) == 1)
        answer.programs = len({name.partition(": ")[0] for name in self._results})
        with open(os.path.join(self._folder, f"{ANSWER}.part"), "w", encoding="utf-8") as file:
            json.dump(to_json(answer), file)
        os.replace(os.path.join(self._folder, f"{ANSWER}.part"), os.path.join(self._folder, ANSWER))

    def _place(self, difference: str) -> tuple[str, int]:
        """Where the program is written whose name a difference begins with."""
        name = difference.partition(": ")[0]
        for number, one in enumerate(self._programs):
            if name == self._names.get(id(one), f"{_name(one.program)}#{number}"):
                written = inspect.unwrap(getattr(one.program, "forward", one.program))
                code = getattr(written, "__code__", None)
                return (code.co_filename, code.co_firstlineno) if code is not None else ("", 0)
        return "", 0

    @functools.cached_property
    def _original(self) -> list[Any] | None:
        """What the run of the original has written: results, what is unsteady, and where numbers are passed; None if
        it is not there, or cannot be read."""
        with contextlib.suppress(FileNotFoundError, pickle.UnpicklingError):
            return list(sys.modules["torch"].load(self._reference, weights_only=True))
        return None

    def _comparable(self, results: dict[str, Any], unsteady: list[tuple[str, str, bool]]) -> dict[str, Any]:
        """What both runs have: each call as `settled` gives it, and those of runs without compile only in these."""
        ends = tuple(f": {how}" for how in draws.PUSHED) if not self._without_compile else ()
        places: dict[str, dict[str, bool]] = {}
        for name, place, is_clock in unsteady:
            places.setdefault(name, {})[place] = is_clock
        return {
            name: (settled_at_end if name.endswith(AT_END) else settled)(places.get(name.partition(": ")[0], {}), one)
            for name, one in results.items() if not name.endswith(ends)
        }  # fmt: skip


def _name(program: Program) -> str:
    """What both runs call a program: the name of its function, which stays when a fix gives the function other code."""
    written = inspect.unwrap(getattr(program, "forward", program))  # not a decorator's
    return str(getattr(written, "__name__", None) or type(program).__name__)


def _is_operator(program: Program) -> bool:
    """Whether it is what an operator such as ``torch.cond`` compiles by itself where nothing else is compiled."""
    return str(getattr(program, "__module__", "")).startswith("torch._higher_order_ops")
