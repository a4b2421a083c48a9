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
import re
import sys
from collections.abc import Iterator
from typing import Any

from irscope.internals import random_seeds
from irscope.internals.compile_calls import caller_hook, result_hook
from irscope.internals.hooks import Hook
from irscope.internals.refusals import refusal_hook
from irscope.internals.truths import truth_hook
from irscope.protocol import FoundEvidence, OneSided, to_json
from irscope.runner import draws
from irscope.runner.attributes import Attributes, attributes_of
from irscope.runner.descriptors import silent
from irscope.runner.kept_state import KeptState, imported_files
from irscope.runner.leaves import DISTURBANCES, OPAQUE, difference, disturbed, leaves, not_a_number
from irscope.runner.rounds import Measured, modes
from irscope.runner.tensors import Program, cloned
from irscope.usercode.user_files import is_package_file, is_user_file
from irscope.vocabulary.visible import bounded

REFERENCE, ANSWER, REFUSALS = "reference.pt", "answer.json", "refusals.jsonl"
_MOST_REFUSALS = 2000
_MOST_CALLS = 8
"""Of a program whose results are kept."""
_MOST_PROGRAMS = 64
_MOST_LINES = 4096
"""That decide by a tensor."""
_MOST_ELEMENTS = 1 << 24
"""Of the tensors of one result; a larger one is compared by its first elements and its sum."""
_WITHOUT = "without a gradient"
"""The place of the names of inputs and parameters that the results do not depend on: optimizers do not change these."""
_CHANGED = "changed "
"""Before the places of what a call changes outside of its inputs."""
_ENTRY = re.compile(r"\[\d+\]$")
_MOST_DIFFERENCES = 5
_SEED = 20


class _Around:
    """A call of a plain function around compiled ones, and the program that was called in it first."""

    def __init__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.function, self.args, self.kwargs = function, cloned(args), cloned(kwargs)
        self.program: Measured | None = None
        self.name = ""


class Evidence:
    """Takes the place of `irscope.runner.rounds.Rounds`: notes the programs of a script, and looks at them at its end.

    Parameters
    ----------
    folder
        Holds ``reference.pt`` if there is something to compare with; else this run writes it.  Gets ``answer.json``, and
        ``refusals.jsonl`` with the graph breaks and where in Dynamo each was raised.
    calls_again
        Whether the programs are called once more after the script.  In the deep lane that may compile more, which is not
        the script's.
    without_compile
        Whether nothing is compiled.  Then it is also noted which way the code decides by the values of tensors, and the
        programs are also called with random numbers near the ends of their range.
    """

    def __init__(self, folder: str, calls_again: bool = True, without_compile: bool = False) -> None:
        self._folder, self._calls_again = folder, calls_again
        self._unsteady: list[tuple[str, str, bool]] = []
        self._reference = os.path.join(folder, REFERENCE)
        self._programs: list[Measured] = []
        self._results: dict[str, dict[str, Any]] = {}
        self._answer = FoundEvidence()
        self._around: list[_Around] = []
        self._names: dict[int, str] = {}
        self._attributes: dict[int, Attributes | None] = {}
        self._over = False
        self._refusals = 0
        self._without_compile = without_compile
        self._answers: dict[tuple[str, int], set[bool]] = {}

    def hooks(self) -> list[Hook]:
        """What sees the programs, and what makes the random numbers of both runs the same."""
        return [
            *random_seeds.hooks(_SEED),
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
            result = compiled(*args, **kwargs)
            self._keep(name, one, result)
            return result

        return called

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
            one.args, one.kwargs = cloned(args), cloned(kwargs)
            self._attributes[id(one)] = attributes_of(one.program)
            one.grad, one.inference = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
        one.calls += 1

    def _keep(self, name: str, one: Measured, result: Any) -> None:
        if sys.modules["torch"].compiler.is_compiling() or self._over:
            return
        if self._around and self._around[-1].program is one:
            return  # what the function around it returns is kept
        if one.calls <= _MOST_CALLS:
            self._results[f"{name}: result of call {one.calls}"] = _small(leaves(result))

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
            state = {key: value.detach().clone() for key, value in _state_of(one.program).items()}
            self._results[f"{name}: parameters and buffers at the end"] = _small(leaves(state))
            attributes = self._attributes.get(id(one))
            if attributes is not None:
                self._results[f"{name}: numbers at the end"] = _kept(attributes)
        self._over = True
        if not self._calls_again:
            return
        with silent(), contextlib.suppress(SystemExit):
            for name, one in named:
                self._call(name, one)

    def _call(self, name: str, one: Measured) -> None:
        for number, (how, change) in enumerate(DISTURBANCES.items()):
            self._results[f"{name}: {how}"] = _called(one, change, number)
        first, again = self._results[f"{name}: {next(iter(DISTURBANCES))}"], _called(one, None)
        unsteady = _unsteady(first, again)
        self._unsteady += [(name, place, is_clock) for place, is_clock in unsteady.items()]
        if _differences({"": _settled(unsteady, first)}, {"": _settled(unsteady, again)}):
            self._answer.unstable += (name,)
        for how in draws.PUSHED if self._without_compile else ():
            self._results[f"{name}: {how}"] = _called(one, None, pushed=how)

    def serve(self) -> None:
        """Writes the evidence, or what compares differently with that of the other run."""
        torch: Any = sys.modules.get("torch")
        answer = self._answer
        if torch is None or not self._results:
            answer.problem = "the script called no program that it had passed to torch.compile"
        elif not os.path.exists(self._reference):
            torch.save([self._results, self._unsteady], self._reference)
        else:
            expected, unsteady = torch.load(self._reference, weights_only=True)
            _compared(self._comparable(expected, unsteady), self._comparable(self._results, unsteady), answer)
            answer.clocks = sum(is_clock for _, _, is_clock in unsteady)
        answer.files = imported_files()[:_MOST_LINES] if self._without_compile else ()
        answer.one_sided = tuple(OneSided(*at, *each) for at, each in self._answers.items() if len(each) == 1)
        answer.programs = len({name.partition(": ")[0] for name in self._results})
        with open(os.path.join(self._folder, f"{ANSWER}.part"), "w", encoding="utf-8") as file:
            json.dump(to_json(answer), file)
        os.replace(os.path.join(self._folder, f"{ANSWER}.part"), os.path.join(self._folder, ANSWER))

    def _comparable(self, results: dict[str, Any], unsteady: list[tuple[str, str, bool]]) -> dict[str, Any]:
        """As both runs can have it: see `_settled`; calls that only runs without compile make are left out of others."""
        ends = tuple(f": {how}" for how in draws.PUSHED) if not self._without_compile else ()
        places: dict[str, dict[str, bool]] = {}
        for name, place, is_clock in unsteady:
            places.setdefault(name, {})[place] = is_clock
        return {
            name: _settled(places.get(name.partition(": ")[0], {}), one)
            for name, one in results.items() if not name.endswith(ends)
        }  # fmt: skip


def _unsteady(first: dict[str, Any], again: dict[str, Any]) -> dict[str, bool]:
    """What two calls that are the same in all else change to something else, and whether it is a clock's: a float.

    An entry that is added to a list has to be added by both, whatever it is.
    """
    places = [place for place in first if place in again and place.startswith(_CHANGED)]
    return {
        place: isinstance(first[place], float) and isinstance(again[place], float) and not _ENTRY.search(place)
        for place in places if difference(first[place], again[place])[0]
    }  # fmt: skip


def _settled(unsteady: dict[str, bool], found: dict[str, Any]) -> dict[str, Any]:
    """Without what a clock gives.  Of all else that is unsteady, as an identifier, only that it is changed counts."""
    if not unsteady:
        return found
    return {
        place: OPAQUE if place in unsteady else value
        for place, value in found.items() if not unsteady.get(place, False)
    }  # fmt: skip


def _kept(attributes: Attributes) -> dict[str, Any]:
    return {f"{_CHANGED}{name}": number for name, number in attributes.changed().items()}


def _name(program: Program) -> str:
    """What both runs call a program: the name of its function, which stays when a fix gives the function other code."""
    written = inspect.unwrap(getattr(program, "forward", program))  # not a decorator's
    return str(getattr(written, "__name__", None) or type(program).__name__)


def _is_operator(program: Program) -> bool:
    """Whether it is what an operator such as ``torch.cond`` compiles by itself where nothing else is compiled."""
    return str(getattr(program, "__module__", "")).startswith("torch._higher_order_ops")


def _compared(expected: dict[str, Any], found: dict[str, Any], answer: FoundEvidence) -> None:
    torch: Any = sys.modules["torch"]
    differs = _differences(expected, found)
    answer.differences = tuple(bounded(text) for text, of_numbers in differs if of_numbers)[:_MOST_DIFFERENCES]
    answer.types = tuple(bounded(text) for text, of_numbers in differs if not of_numbers)[:_MOST_DIFFERENCES]
    values = [(part, leaf) for part, one in expected.items() for leaf in one.values()]
    answer.tensors = sum(isinstance(leaf, torch.Tensor) for part, leaf in values)
    answer.opaque = sum(isinstance(leaf, str) and leaf.startswith(OPAQUE) for part, leaf in values)
    answer.gradients = sum(place.startswith("gradient") for one in expected.values() for place in one)
    answer.failed = sum("raised" in one for one in expected.values())
    answer.zeroed = tuple(_zeroed(expected, found))[:_MOST_DIFFERENCES]


def _zeroed(expected: dict[str, Any], found: dict[str, Any]) -> Iterator[str]:
    """What has no gradient before and one now, in the calls that both have."""
    for name, one in expected.items():
        other = found.get(name, {})
        for wanted in one.get(_WITHOUT, ()) if _WITHOUT in other else ():
            if wanted not in other[_WITHOUT]:
                yield bounded(f"{name}: {wanted}")


def _differences(expected: dict[str, Any], found: dict[str, Any]) -> list[tuple[str, bool]]:
    """What differs, in words, and whether numbers do."""
    differs: list[tuple[str, bool]] = []
    if list(expected) != list(found):
        missing = [name for name in (*expected, *found) if (name in expected) != (name in found)]
        return [(f"{missing[0] if missing else 'the order of calls'}: only in one of the runs", True)]
    for name, one in expected.items():
        other = found[name]
        if "raised" in one and "raised" in other:  # an assertion may become another error, but stays one
            continue
        if one.keys() != other.keys():
            if "raised" in other or "raised" in one:
                side, text = ("now", other["raised"]) if "raised" in other else ("before", one["raised"])
                differs.append((f"{name}: it raises {text} only {side}", True))
            else:
                differs.append((f"{name}: {_only_in_one(one, other)}", True))
            continue
        for place, leaf in one.items():
            if place == _WITHOUT:
                continue
            words, of_numbers = difference(leaf, other[place])
            if words:
                differs.append((f"{name}, {place or 'result'}: {words}", of_numbers))
    return differs


def _only_in_one(expected: dict[str, Any], found: dict[str, Any]) -> str:
    """Which of the places of results that only one run has is the first, in words."""
    place = next(place for place in (*expected, *found) if (place in expected) != (place in found))
    if not place.startswith(_CHANGED):
        return "other results"
    now = "is not changed" if place in expected else "is changed, too"
    return f"{place.removeprefix(_CHANGED)} {now}"


def _called(one: Measured, change: Any, number: int = 0, pushed: str = "") -> dict[str, Any]:
    """The results of a call, what it changed of its inputs, its gradients and the next random numbers.

    Each ``number`` has other random numbers: what happens by chance, as that a layer is left out, is to be seen in some
    of the calls.
    """
    torch: Any = sys.modules["torch"]
    state = {key: (value, value.detach().clone()) for key, value in _state_of(one.program).items()}
    attributes, kept = attributes_of(one.program), KeptState(one.program)
    random_seeds.seed_all(_SEED)
    found: dict[str, Any] = {}
    try:
        with modes(one):
            args, kwargs = disturbed(one.args, change), disturbed(one.kwargs, change)
            random_seeds.seed_all(_SEED + number)
            with draws.pushed(pushed):
                result = one.compiled(*args, **kwargs)
            found = {f"result{place}": leaf for place, leaf in leaves(result).items()}
            found |= {f"input{place}": leaf for place, leaf in leaves([args, kwargs]).items()}
            found["random numbers after it"] = torch.rand(4)
            found["Python's and NumPy's random numbers after it"] = torch.tensor(random_seeds.next_ones())
            found |= {f"{_CHANGED}{place}": value for place, value in kept.changed().items()}
            found |= _gradients(one, result, [args, kwargs]) if change is not not_a_number else {}
            found |= {f"state {key}": value.detach().clone() for key, (value, _) in state.items()
                      if not value.requires_grad}  # fmt: skip
            found |= {} if attributes is None else _kept(attributes)
    except Exception as error:  # noqa: BLE001  whatever the program raises is what it does
        found = {"raised": bounded(f"{type(error).__name__}: {error}".splitlines()[0])}
    with torch.no_grad():
        for value, before in state.values():
            if not value.is_inference():
                value.copy_(before)
    kept.put_back()
    if attributes is not None:
        attributes.put_back()
    return _small(found)


def _gradients(one: Measured, result: Any, inputs: Any) -> dict[str, Any]:
    """Of a weighted sum of the results, for the inputs and parameters that require them."""
    torch: Any = sys.modules["torch"]
    tensors = [t for t in _live_tensors(result) if t.requires_grad and (t.is_floating_point() or t.is_complex())]
    wanted = {f"input {n}": t for n, t in enumerate(_live_tensors(inputs)) if t.requires_grad and t.is_leaf}
    wanted |= {f"state {key}": t for key, t in _state_of(one.program).items() if t.requires_grad}
    if not tensors or not wanted:
        return {}
    weights = [torch.randn(t.shape, device=t.device).to(t.dtype) for t in tensors]
    found = torch.autograd.grad(tensors, list(wanted.values()), weights, allow_unused=True)
    zero = {name: torch.zeros_like(t) for name, t in wanted.items()}
    given = {f"gradient of {n}": zero[n] if g is None else g.detach() for n, g in zip(wanted, found, strict=True)}
    return {**given, _WITHOUT: [n for n, g in zip(wanted, found, strict=True) if g is None]}


def _live_tensors(value: Any, depth: int = 0) -> Iterator[Any]:
    if isinstance(value, sys.modules["torch"].Tensor):
        yield value
    elif depth < 20 and isinstance(value, (tuple, list, dict)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _live_tensors(one, depth + 1)
    elif depth < 20 and hasattr(value, "__dataclass_fields__"):
        yield from _live_tensors({name: getattr(value, name, None) for name in value.__dataclass_fields__}, depth + 1)


def _state_of(program: Any) -> dict[str, Any]:
    module = getattr(program, "_orig_mod", getattr(program, "__self__", program))
    if not isinstance(module, sys.modules["torch"].nn.Module):
        return {}
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def _small(found: dict[str, Any]) -> dict[str, Any]:
    """With the large tensors cut, and on the CPU."""
    torch: Any = sys.modules["torch"]
    return {
        name: leaf if not isinstance(leaf, torch.Tensor) else leaf.detach().cpu() if leaf.numel() <= _MOST_ELEMENTS
        else torch.cat([leaf.detach().reshape(-1)[:_MOST_ELEMENTS].cpu(), leaf.detach().sum().reshape(1).cpu().to(leaf.dtype)])
        for name, leaf in found.items()
    }  # fmt: skip
