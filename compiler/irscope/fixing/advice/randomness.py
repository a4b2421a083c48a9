"""Random numbers that are not torch's."""

from __future__ import annotations

import ast

from irscope.fixing.advice.common import around, pass_in, plain_rule, replacing, some, without_keyword
from irscope.fixing.advice.conditions import decision_at, uses_of_value
from irscope.fixing.advice.model import Advice, Option
from irscope.fixing.advice.spot import Spot
from irscope.fixing.rules.random_numbers import traced
from irscope.protocol import FixMethod

_TWINS = {
    ("random.gauss random.normalvariate numpy.random.normal", 2): "empty(()).normal_({0}, {1})",
    ("numpy.random.randn numpy.random.standard_normal numpy.random.normal", 0): "randn(())",
    ("random.random numpy.random.rand numpy.random.random numpy.random.uniform", 0): "rand(())",
    ("random.expovariate", 1): "empty(()).exponential_({0})",
    ("numpy.random.uniform", 2): "empty(()).uniform_({0}, {1})",
}
"""What draws from the same distribution in torch, by full names and how many arguments these get."""
_SET = "Set the generator in the caller, before the compiled code"


def options(spot: Spot) -> tuple[Option, ...]:
    """For calls of ``random``, ``numpy.random`` and torch's generator state."""
    call, text = spot.call, spot.text(spot.call)
    if spot.called.rpartition(".")[2] in ("manual_seed", "manual_seed_all", "seed", "set_rng_state", "setstate"):
        return (around(spot, _SET, text),)
    if spot.alone or call is None:
        return (around(spot, "Do it in the caller", text),)
    # A decision that hangs on a tensor in the place of the number breaks as well.
    decides = bool(uses_of_value(spot) & {"decision", "range", "index"})
    decision, caveat = decision_at(spot), "The function is compiled once for each answer."
    if decision is None:
        caveat = "Wrap it in `torch.tensor(...)`: a Python number would be compiled in, and each new one again."
        caveat = "The function is compiled again for each number." if decides else caveat
    passed = pass_in(spot, decision.test if decision is not None else call, caveat)
    if decides:
        return some(passed)
    code, do = traced(spot.source, call), "Use a function that Dynamo knows"
    same = replacing(spot, call, code, do, "The numbers are the same.") if code is not None else None
    return some(same, _torch_twin(spot, call), passed)


number_drawn = plain_rule(  # ``np.random.randn()`` and similar calls, also from a generator: ``rng.normal()``
    "draws a random number that is not a tensor",
    "The generators of NumPy and Python are outside of the graph, which would repeat the numbers of its first run.",
    options,
)


def _torch_twin(spot: Spot, call: ast.Call) -> Option | None:
    """The same distribution from torch, as a tensor without dimensions."""
    given = [*map(spot.text, call.args)]
    made = [text for (names, count), text in _TWINS.items() if spot.called in names.split() and count == len(given)]
    if spot.called == "numpy.random.permutation" and len(given) == 1 and given[0].isdigit():
        made = ["randperm({0})"]
    if call.keywords or not made:
        return None
    caveat = "The result is a tensor, and the numbers follow `torch.manual_seed`."
    return replacing(spot, call, f"{spot.torch}.{made[0].format(*given)}", FixMethod.DRAW_FROM_TORCH, caveat)


generator_method = plain_rule(  # ``generator.manual_seed(…)``
    "changes the state of a random number generator",
    "The state is not in the graph; a graph that is run again would not change it again.",
    lambda spot: [around(spot, _SET, spot.text(spot.expression))],
)


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
    what = f"{spot.short(spot.call)} fills a tensor with random integers in place"
    why = "Dynamo has no rule for `random_`; it traces `torch.randint` and `torch.randint_like`."
    match spot.call:
        case ast.Call(func=ast.Attribute(value=receiver), args=[_, *_], keywords=[]) as call:
            if spot.alone and not isinstance(receiver, ast.Name):
                return Advice(what, why)
            name = spot.text(receiver)
            made = f"{spot.torch}.randint_like({', '.join([name, *map(spot.text, call.args)])})"
            caveat = "It is a new tensor: other names of the old one do not see it."
            code = f"{name} = {made}" if spot.alone else made
            return Advice(what, why, (replacing(spot, call, code, "Draw a new tensor", caveat),), receiver)
    return Advice(what, why)
