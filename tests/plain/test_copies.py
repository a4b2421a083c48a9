"""Copies of a call's arguments take the same compiled code as the arguments: what guards look at is kept."""

from __future__ import annotations

from typing import Any

import torch
from irscope.runner.leaves import DISTURBANCES, disturbed
from irscope.runner.rounds import Rounds
from irscope.runner.tensors import cloned


def test_a_tensor_that_is_given_twice_is_one_copy() -> None:
    tokens = torch.arange(6)
    args, kwargs = cloned(((tokens, [tokens]), {"labels": tokens, "other": tokens + 1, "cache": None}))
    first, (second,) = args
    assert first is second is kwargs["labels"] is not tokens
    assert kwargs["other"] is not first and torch.equal(first, tokens) and kwargs["cache"] is None


def test_strides_shared_memory_and_parameters_stay() -> None:
    whole = torch.arange(12.0).reshape(3, 4)
    given = [whole.t(), torch.ones(3, 1).expand(3, 4), torch.arange(8.0)[::2], torch.nn.Parameter(whole + 1)]
    copies = cloned(given)
    assert [(one.stride(), type(one), one.requires_grad) for one in copies] == [
        (one.stride(), type(one), one.requires_grad) for one in given
    ]
    assert all(torch.equal(one, other) for one, other in zip(copies, given, strict=True))
    copied, row = cloned((whole, whole[1]))
    copied += 10
    assert torch.equal(row, whole[1] + 10) and whole[0, 0] == 0


def test_a_program_is_measured_with_one_copy_of_what_it_was_given_twice() -> None:
    rounds = Rounds("", lambda program: "")
    program = rounds._see(abs, lambda **kwargs: None)
    tokens = torch.arange(3)
    program(input_ids=tokens, labels=tokens)
    [measured] = rounds._measured
    assert measured.kwargs["input_ids"] is measured.kwargs["labels"] is not tokens


def test_disturbed_inputs_are_shared_as_they_were() -> None:
    tokens = torch.arange(12)
    for how in DISTURBANCES.values():
        found: Any = disturbed([(tokens,), {"labels": tokens}], how)
        assert found[0][0] is found[1]["labels"] is not tokens
