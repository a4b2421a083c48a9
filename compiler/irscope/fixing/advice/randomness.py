"""Random numbers that are not torch's."""

from __future__ import annotations

import ast

from irscope.fixing.advice.common import around, hoist, pass_in, replacing, some, without_keyword
from irscope.fixing.advice.conditions import decision_at
from irscope.fixing.advice.model import Advice, Option
from irscope.fixing.advice.spot import Spot
from irscope.fixing.advice.uses import uses_of_value
from irscope.protocol import FixMethod


def options(spot: Spot) -> tuple[Option, ...]:
    """For calls of ``random``, ``numpy.random`` and torch's generator state."""
    call = spot.call
    name = spot.qualified(call.func) if call is not None else ""
    text = spot.text(call) if call is not None else ""
    if name.rpartition(".")[2] in ("manual_seed", "manual_seed_all", "seed", "set_rng_state", "setstate"):
        return (around(spot, "Set the generator in the caller, before the compiled code", text),)
    if spot.alone or call is None:
        return (around(spot, "Do it in the caller", text),)
    return some(_uniform(spot, call, name), _torch_twin(spot, call, name), _passed(spot, call))


def _passed(spot: Spot, call: ast.Call) -> Option | None:
    """The number, or what is decided by it, as an argument."""
    if (decision := decision_at(spot)) is not None:
        return pass_in(spot, decision.test, "The function is compiled once for each answer.")
    if _compared(spot):
        return pass_in(spot, call, "The function is compiled again for each number.")
    caveat = "Wrap it in `torch.tensor(...)`: a Python number would be compiled in, and each new one again."
    return pass_in(spot, call, caveat)


def number_drawn(spot: Spot) -> Advice:
    """``np.random.randn()`` and its like, also from a generator: ``rng.normal()``."""
    what = f"{spot.short(spot.expression)} draws a random number that is not a tensor"
    why = (
        "The generators of NumPy and Python are outside of the graph, which would repeat the numbers of its first run."
    )
    return Advice(what, why, options(spot))


def _uniform(spot: Spot, call: ast.Call | None, name: str) -> Option | None:
    """``random.random()`` by a function that Dynamo knows; ``uniform(0, 1)`` draws the same number."""
    if call is None or name != "random.random" or not isinstance(call.func, ast.Attribute) or _compared(spot):
        return None
    code = f"{spot.text(call.func.value)}.uniform(0, 1)"
    return replacing(spot, call, code, "Use a function that Dynamo knows", "The numbers are the same.")


def _compared(spot: Spot) -> bool:
    """Whether a decision hangs on the number, so that a tensor in its place breaks as well."""
    return bool(uses_of_value(spot) & {"decision", "range", "index"})


def _torch_twin(spot: Spot, call: ast.Call | None, name: str) -> Option | None:
    """The same distribution from torch, as a tensor without dimensions."""
    torch, imports = spot.need("torch")
    if call is None or call.keywords:
        return None
    arguments = [f"({spot.text(a)})" if isinstance(a, ast.BinOp) else spot.text(a) for a in call.args]
    made = _twin(torch, name, arguments)
    if made is None or _compared(spot):
        return None
    method, caveat = FixMethod.DRAW_FROM_TORCH, "The result is a tensor, and the numbers follow `torch.manual_seed`."
    return replacing(spot, call, made, method.title, caveat, imports, method)


def _twin(torch: str, name: str, arguments: list[str]) -> str | None:
    """The call of torch that draws from the same distribution, as an expression; None if there is none."""
    count = len(arguments)
    if name in ("random.gauss", "random.normalvariate", "numpy.random.normal") and count == 2:
        scaled = f"{torch}.randn(())" if arguments[1] in ("1", "1.0") else f"{arguments[1]} * {torch}.randn(())"
        return (
            f"{torch}.randn(())"
            if arguments[0] in ("0", "0.0") and "*" not in scaled
            else f"({arguments[0]} + {scaled})"
        )
    if name in ("numpy.random.randn", "numpy.random.standard_normal", "numpy.random.normal") and not count:
        return f"{torch}.randn(())"
    if name in ("random.random", "numpy.random.rand", "numpy.random.random", "numpy.random.uniform") and not count:
        return f"{torch}.rand(())"
    if name == "random.expovariate" and count == 1:
        return f"({torch}.empty(()).exponential_({arguments[0]}))"
    if name == "numpy.random.uniform" and count == 2:
        return f"{torch}.empty(()).uniform_({arguments[0]}, {arguments[1]})"
    if name == "numpy.random.permutation" and count == 1 and arguments[0].isdigit():
        return f"{torch}.randperm({arguments[0]})"
    return None


def generator_made(spot: Spot) -> Advice:
    """``torch.Generator()`` inside compiled code."""
    what = f"{spot.short(spot.expression)} creates an object that a graph can only receive as an input"
    why = "Its state lives outside of the graph, so it must exist before."
    made = hoist(spot, spot.call, "One generator is then used in all calls, and its state carries over.")
    return Advice(what, why, some(made))


def generator_method(spot: Spot) -> Advice:
    """``generator.manual_seed(…)``."""
    what = f"{spot.short(spot.expression)} changes the state of a random number generator"
    why = "The state is not in the graph; a graph that is run again would not change it again."
    text = spot.text(spot.expression) if spot.expression is not None else ""
    return Advice(what, why, (around(spot, "Set the generator in the caller, before the compiled code", text),))


def generator_argument(spot: Spot) -> Advice:
    """``torch.rand(…, generator=g)`` and other arguments that cannot be put into a graph."""
    call = spot.call
    if call is None or all(keyword.arg != "generator" for keyword in call.keywords):
        what = f"{spot.short(spot.expression)} gets an argument that cannot be in a graph"
        return Advice(what, spot.cause.explanation)
    what = f"{spot.short(call)} draws from its own generator"
    caveat = "The numbers differ; seed it with `torch.manual_seed` before the compiled code."
    first = replacing(spot, call, without_keyword(spot, call, "generator"), "Draw from the default generator", caveat)
    second = pass_in(spot, call, "The numbers stay those of the generator.")
    return Advice(what, "A `torch.Generator` cannot be an argument of an operator in the graph.", some(first, second))


def random_in_place(spot: Spot) -> Advice:
    """``x.random_(…)``."""
    call = spot.call
    what = f"{spot.short(call)} fills a tensor with random integers in place"
    why = "Dynamo has no rule for `random_`; it traces `torch.randint` and `torch.randint_like`."
    if call is None or not isinstance(call.func, ast.Attribute) or not call.args or call.keywords:
        return Advice(what, why)
    torch, imports = spot.need("torch")
    receiver = call.func.value
    made = f"{torch}.randint_like({spot.text(receiver)}, {', '.join(spot.text(arg) for arg in call.args)})"
    if spot.alone and not isinstance(receiver, ast.Name):
        return Advice(what, why)
    code = f"{spot.text(receiver)} = {made}" if spot.alone else made
    caveat = "It is a new tensor: other names of the old one do not see it."
    return Advice(what, why, (replacing(spot, call, code, "Draw a new tensor", caveat, imports),), receiver)
