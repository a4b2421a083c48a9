"""The words of a graph break: what happened, why here, and what to do, as code for this very line.

`words_for` is the entry.  Which rule speaks for which of PyTorch's ids is in `RULES`; the rules are in files by theme.
An id without a rule has the words of PyTorch's own registry, cleaned.
"""

from __future__ import annotations

import contextlib
import dataclasses
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
from irscope.fixing.advice.fallback import from_registry
from irscope.fixing.advice.library import advice_in_library, is_for_library
from irscope.fixing.advice.model import Advice, BreakContext, Option, Words
from irscope.fixing.advice.origin import origin_of
from irscope.fixing.advice.sequel import sequel_of
from irscope.fixing.advice.spot import Spot
from irscope.fixing.edits import edits_of
from irscope.protocol import Edit

__all__ = ["RULES", "BreakContext", "Edit", "Option", "Words", "words_for"]

_MOST_OPTIONS = 3

RULES: dict[str, Callable[[Spot], Advice]] = {
    # a tensor's value is asked for
    "GB0124": values.scalar,
    "GB0109": values.tolist,
    "GB0033": values.data_dependent_operator,
    "GB0207": values.sort_by_tensors,
    "GB0193": values.min_or_max,
    "GB6270": values.tensor_method,
    "GB0569": output.text_of_tensor,
    # decisions
    "GB0170": branches.data_dependent_branch,
    DATA_DEPENDENT_GUARD: guards.data_dependent_guard,
    "GB0034": control.assertion,
    "GB0171": control.assertion,
    # shapes
    "GB0036": shapes.dynamic_shape,
    "GB0037": shapes.no_meta_kernel,
    "GB0246": shapes.one_hot,
    # output
    "GB0291": output.logger_call,
    "GB4841": output.root_logging,
    "GB0296": output.not_reorderable,
    # calls
    "GB0059": control.builtin,
    "GB0007": calls.skipped_call,
    "GB0008": calls.skipped_call,
    "GB0009": calls.skipped_call,
    "GB0147": calls.skipped_call,
    "GB0156": calls.skipped_call,
    "GB3934": calls.concatenated,
    "GB0098": calls.disabled,
    "GB0099": calls.disabled,
    "GB0025": calls.user_break,
    "GB4297": calls.user_break,
    # arrays, storages, sparse tensors
    "GB0294": arrays.numpy_function,
    "GB0158": arrays.array_method,
    "GB0087": arrays.fake_tensor_failure,
    "GB0185": arrays.array_of_objects,
    "GB0250": arrays.array_of_objects,
    "GB0208": arrays.non_tensor_result,
    "GB5976": arrays.storage,
    "GB0015": arrays.sparse,
    "GB0277": arrays.sparse,
    "GB0374": arrays.sparse,
    "GB0126": arrays.resized,
    "GB0128": arrays.resized,
    "GB0148": calls.delayed,
    # randomness
    "GB0363": randomness.generator_made,
    "GB7650": randomness.generator_method,
    "GB0107": randomness.random_in_place,
    "GB0055": randomness.generator_argument,
    # contexts
    "GB0142": contexts.unsupported_context,
    "GB0262": contexts.unsupported_context,
    "GB0212": contexts.profiler,
    "GB0066": contexts.inside_context,
    # objects
    "GB4198": state.deepcopy,
    "GB0179": state.deepcopy,
    "GB8977": state.class_made,
    "GB0264": state.parameter_made,
    "GB0228": state.parameter_made,
    "GB0014": state.recurrent_module,
    "GB0467": state.class_attribute_set,
    "GB0013": state.handle_from_elsewhere,
    "GB0092": state.not_rebuilt,
    "GB0006": state.module_attribute,
    # gradients
    "GB0123": autograd.backward_call,
    "GB9186": autograd.gradient_call,
    "GB0125": autograd.requires_grad_set,
    "GB0206": autograd.requires_grad_set,
    "GB8985": autograd.leaf_leaks,
    "GB2464": autograd.dirty_not_returned,
    "GB2019": autograd.dirty_outside,
    "GB0225": autograd.made_with_grad,
    "GB0104": autograd.kept_gradient,
    "GB0108": autograd.kept_gradient,
    "GB0056": autograd.data_replaced,
    "GB0149": autograd.functorch,
    "GB0067": autograd.checkpointed,
    "GB4413": autograd.checkpointed,
    "GB0000": autograd.subclass,
    "GB0103": autograd.subclass,
    "GB0163": autograd.subclass,
    "GB0164": autograd.subclass,
    # control flow
    "GB0003": control.generator,
    "GB8335": control.generator_rebuilt,
    "GB4347": control.iterated,
    "GB0811": control.iterated,
    "GB0088": control.raised,
    "GB0069": control.import_failed,
    "GB7000": control.in_loop,
}


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


def _edits(spot: Spot, option: Option) -> tuple[Edit, ...]:
    """The edits of an option; none if they cannot be made."""
    with contextlib.suppress(ValueError):
        return edits_of(spot.source, option.changes)
    return ()


def _words(spot: Spot, advice: Advice) -> Words:
    effect = "the whole function runs as plain Python" if spot.context.skipped else "the graph is cut here"
    origin = ""
    with contextlib.suppress(Exception):
        origin = origin_of(spot, advice.value) if advice.value is not None else ""
    parts = [" ".join(part for part in (advice.why, origin) if part), *sequel_of(spot)]
    given = (advice.options or from_registry(spot).options)[:_MOST_OPTIONS]
    options = tuple(dataclasses.replace(one, edits=_edits(spot, one)) for one in given)
    return Words(
        message=f"Graph break: {advice.what}; {effect}.",
        explanation="\n".join(part for part in parts if part),
        hints=tuple(option.hint for option in options),
        options=options,
    )
