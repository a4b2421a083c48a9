"""The words of a graph break: what happened, why here, and what to do, as code for this very line.

`words_for` is the entry.  Which rule speaks for which of PyTorch's ids is in `RULES`; the rules are in files by theme.
An id without a rule has the words of PyTorch's own registry, cleaned.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from irscope.events.break_message import DATA_DEPENDENT_GUARD
from irscope.fixing.advice import (
    arrays,
    autograd,
    branches,
    calls,
    contexts,
    guards,
    output,
    randomness,
    shapes,
    state,
    values,
)
from irscope.fixing.advice import control_flow as control
from irscope.fixing.advice.fallback import from_registry, sequel_of
from irscope.fixing.advice.library import advice_in_library, is_for_library
from irscope.fixing.advice.model import Advice, BreakContext, Option, Words
from irscope.fixing.advice.origin import origin_of
from irscope.fixing.advice.plain import PLAIN
from irscope.fixing.advice.spot import Spot

__all__ = ["RULES", "BreakContext", "Option", "Words", "words_for"]

_MOST_OPTIONS = 3

_BY_CODES: dict[str, Callable[[Spot], Advice]] = {
    "GB0124": values.scalar,
    "GB0109": values.tolist,
    "GB0033": values.data_dependent_operator,
    "GB0207": values.sort_by_tensors,
    "GB0193 GB6270": values.python_function,
    "GB0569": output.text_of_tensor,
    "GB0170": branches.data_dependent_branch,
    DATA_DEPENDENT_GUARD: guards.data_dependent_guard,
    "GB0034 GB0171": control.assertion,
    "GB0036": shapes.dynamic_shape,
    "GB0037": shapes.no_meta_kernel,
    "GB0246": shapes.one_hot,
    "GB0291": output.logger_call,
    "GB4841": lambda spot: (output.logger_call if spot.called.startswith("logging.") else from_registry)(spot),
    "GB0296": output.not_reorderable,
    "GB0059": control.builtin,
    "GB0007 GB0008 GB0009 GB0147 GB0156": calls.skipped_call,
    "GB0098 GB0099": calls.disabled,
    "GB0025 GB4297": calls.user_break,
    "GB0294": arrays.numpy_function,
    "GB0087": arrays.fake_tensor_failure,
    "GB0208": arrays.non_tensor_result,
    "GB5976": arrays.storage,
    "GB0015 GB0277 GB0374": arrays.sparse,
    "GB0126 GB0128": arrays.resized,
    "GB0148": calls.delayed,
    "GB7650": randomness.generator_method,
    "GB0107": randomness.random_in_place,
    "GB0055": randomness.generator_argument,
    "GB0142 GB0262": contexts.unsupported_context,
    "GB0066": contexts.inside_context,
    "GB4198 GB0179": state.deepcopy,
    "GB8977": state.class_made,
    "GB0264 GB0228": state.parameter_made,
    "GB0467": state.class_attribute_set,
    "GB0013": state.handle_from_elsewhere,
    "GB0092": state.not_rebuilt,
    "GB0123": autograd.backward_call,
    "GB0125 GB0206": autograd.requires_grad_set,
    "GB8985": autograd.leaf_leaks,
    "GB0225": autograd.made_with_grad,
    "GB0056": autograd.data_replaced,
    "GB0067 GB4413": autograd.checkpointed,
    "GB0003": control.generator,
    "GB8335": control.generator_rebuilt,
    "GB4347 GB0811": calls.stepped,
    "GB0088": control.raised,
    "GB0069": control.import_failed,
    **PLAIN,
}
RULES = {code: rule for codes, rule in _BY_CODES.items() for code in codes.split()}


def words_for(context: BreakContext) -> Words:
    """The words of one graph break.

    A rule that fails (an unexpected shape of code) costs its advice, never the finding.
    """
    spot = Spot(context)
    return _words(spot, _advice(spot))


def _advice(spot: Spot) -> Advice:
    with contextlib.suppress(Exception):
        if is_for_library(spot):
            return advice_in_library(spot, _advice)
        rule = RULES.get(spot.cause.code)
        if rule is not None and spot.node is not None:
            return rule(spot)
    return from_registry(spot)


def _words(spot: Spot, advice: Advice) -> Words:
    effect = f"{spot.context.whole} runs as plain Python" if spot.context.skipped else "the graph is cut here"
    origin = ""
    with contextlib.suppress(Exception):
        origin = origin_of(spot, advice.value) if advice.value is not None else ""
    parts = [" ".join(part for part in (advice.why, origin) if part), *sequel_of(spot)]
    options = (advice.options or from_registry(spot).options)[:_MOST_OPTIONS]
    return Words(
        message=f"Graph break: {advice.what}; {effect}.",
        explanation="\n".join(part for part in parts if part),
        hints=tuple(option.hint for option in options),
        options=options,
    )
