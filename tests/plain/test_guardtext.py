"""What a failed guard says: every reason that the cases hold, and those seen elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from irscope.events.trace import reasons_in
from irscope.ir.guard_text import about, parse_failed_guard

TRUTH = Path(__file__).parents[1] / "cases" / "truth"


def with_stack(guard: str, file: str, line: int, function: str, code: str) -> str:
    """As PyTorch writes a guard that it knows the user's line of."""
    return f'{guard:<60}  # {code}  # {file}:{line} in {function}\nUser stack trace:\n  File "{file}", line {line}, in {function}\n    {code}'


# reason → source, code, what, frames
FROM_THE_CASES = [
    ("0/0: tensor 'x' size mismatch at index 1. expected 4, actual 5", "x", "recompile-size", "size 4 → 5 in dimension 1", ()),
    ("1/1: tensor 'y' size mismatch at index 0. expected 3, actual 5", "y", "recompile-size", "size 3 → 5 in dimension 0", ()),
    ("1/0: tensor 'x' requires_grad mismatch. expected requires_grad=0", "x", "recompile-requires-grad", "it now requires grad", ()),
    ("0/0: tensor 'x' dispatch key set mismatch. expected DispatchKeySet(CPU, BackendSelect, AutogradCPU), actual DispatchKeySet(CUDA, BackendSelect, AutogradCUDA)", "x", "recompile-device", "it was on `cpu` and is on `cuda` now", ()),
    ('0/0: Duplicate tensors found: ["a", "b"]', "a", "recompile-aliasing", "`a` and `b` are one tensor now", ()),
    (with_stack("4/0: ___stack0 == 1.999556064605713", "m.py", 6, "torch_dynamo_resume_in_level3_at_5", "return t / scale"), "___stack0", "recompile-value", "it was 1.999556064605713 when this was compiled", (("m.py", 6),)),
    (with_stack("2/0: G['_total'] == 0.0", "lib/stats.py", 7, "_accumulate", "_total += value.item()"), "_total", "recompile-value", "it was 0.0 when this was compiled", (("lib/stats.py", 7),)),
    (with_stack("1/0: power == 2", "m.py", 8, "torch_dynamo_resume_in_two_stage_at_7", "return y**power"), "power", "recompile-value", "it was 2 when this was compiled", (("m.py", 8),)),
    (with_stack("0/1: G['USE_SQUARE'] == True", "m.py", 9, "act", "if USE_SQUARE:"), "USE_SQUARE", "recompile-value", "it was True when this was compiled", (("m.py", 9),)),
    (with_stack("0/0: times == 2", "m.py", 6, "repeat_add", "for _ in range(times):"), "times", "recompile-value", "it was 2 when this was compiled", (("m.py", 6),)),
    ("0/1: times == 3  # for _ in range(times):  # m.py:6 in repeat_add (_dynamo/variables/tensor.py:2606 in evaluate_expr)", "times", "recompile-value", "it was 3 when this was compiled", ()),
    (with_stack("0/7: tag == 'hhhhhhhh'", "m.py", 6, "tagged", "return x + len(tag)"), "tag", "recompile-value", "it was 'hhhhhhhh' when this was compiled", (("m.py", 6),)),
    (
        "0/0: self._modules['drop'].training == True                   # return F.dropout(input, self.p, self.training, self.inplace)  # nn/modules/dropout.py:73 in forward\n"
        'User stack trace:\n  File "m.py", line 12, in forward\n    return self.drop(self.fc(x))\n  File "torch/nn/modules/dropout.py", line 73, in forward\n    return F.dropout(input, self.p, self.training, self.inplace)',
        "self.drop.training", "recompile-training-mode", "it was in train mode when this was compiled", (("m.py", 12), ("torch/nn/modules/dropout.py", 73)),
    ),
]  # fmt: skip
SEEN_ELSEWHERE = [
    ("0/0: tensor 'x' dtype mismatch. expected Float, actual Double", "x", "recompile-dtype", "dtype Float → Double"),
    ("0/0: tensor 'x' rank mismatch. expected 2, actual 3", "x", "recompile-rank", "rank 2 → 3"),
    ("0/0: tensor 'x' stride mismatch at index 1. expected 1, actual 8", "x", "recompile-stride", "stride 1 → 8 in dimension 1"),
    ("0/0: tensor 'x' requires_grad mismatch. expected requires_grad=1", "x", "recompile-requires-grad", "it no longer requires grad"),
    ("0/0: tensor 'self._modules['0']._parameters['weight']' size mismatch at index 0. expected 4, actual 5", "self[0].weight", "recompile-size", "size 4 → 5 in dimension 0"),
    ("0/0: tensor 'L['args'][0]' size mismatch at index 0. expected 4, actual 5", "args[0]", "recompile-size", "size 4 → 5 in dimension 0"),
    ("0/0: expected type of 'x' to be a tensor type, ' but found <class '__main__.Mine'>", "x", "recompile-type", "it was a tensor when this was compiled and is a `Mine` now"),
    ("0/0: expected type of 'L['x']' to be <class 'torch.Tensor'>, but found <class 'm.Mine'>", "x", "recompile-type", "it was a tensor when this was compiled and is a `m.Mine` now"),
    ("0/0: GLOBAL_STATE changed: grad_mode ", "", "recompile-global-state", "global state changed: grad_mode"),
    ("0/0: ___check_type_id(L['x'], 94270)", "x", "recompile-type", "its type changed"),
    ("0/0: ___check_type_id(layer, 9446), type=<class 'torch.nn.modules.activation.ReLU'>  # return layer(x)", "layer", "recompile-type", "it was a `ReLU` when this was compiled"),
    ("0/0: tensor 'w._parameters['weight']' size mismatch at index 0. expected 4, actual 5. Guard failed on a parameter, consider using torch._dynamo.config.force_parameter_static_shapes = False", "w.weight", "recompile-size", "size 4 → 5 in dimension 0"),
    ('0/0: Duplicate tensors found: ["L[\'x\']", "L[\'y\']"]', "x", "recompile-aliasing", "`x` and `y` are one tensor now"),
    ("0/0: ___check_obj_id(L['self'].act, 94270)", "self.act", "recompile-object", "it is another object now"),
    ("0/0: Cache line invalidated because L['___stack0'] got deallocated", "___stack0", "recompile-object", "it is another object now, and the first one was freed"),
    ("0/0: self._modules['drop'].training == False", "self.drop.training", "recompile-training-mode", "it was in eval mode when this was compiled"),
    ("!0/0/0: n == 3", "n", "recompile-value", "it was 3 when this was compiled"),
    ("0/0: len(L['xs']) == 2", "len(xs)", "recompile-value", "it was 2 when this was compiled"),
    ("0/0: not ___dict_contains('forward', G['layer'].__dict__)", "layer.forward", "recompile-object", "it was that of the class when this was compiled, and the object has its own now"),
    ("0/0: not L['flag']", "flag", "recompile-condition", "`not flag` no longer holds"),
    ("0/1: 2 <= L['x'].size()[0] <= 512", "x", "recompile-condition", "`2 <= x.size()[0] <= 512` no longer holds"),
    ("0/1: L['x'].size()[0] == L['y'].size()[1]", "x", "recompile-condition", "`x.size()[0] == y.size()[1]` no longer holds"),
    ("0/1: L['self'].cfg.n > 3 and len(L['xs']) < 2", "self.cfg.n", "recompile-condition", "`self.cfg.n > 3 and len(xs) < 2` no longer holds"),
    ("0/1: L['n'] > 3", "n", "recompile-value", "`n > 3` no longer holds"),
    ("0/0: BACKEND_MATCH failure: torch.compile detected different backend callables. Cached backend: A (id=0x7f).", "", "recompile-backend", "it is compiled with another backend or other options now"),
    ("0/0: list(dict.keys(L['d']))[0] == <__main__.Key object at 0x7f957bc77710>  # d[k]", "list(d)[0]", "recompile-object", "it is another object now"),
    ("0/0: L['d']['f'] == <function f at 0x7f957bc77710>", "d['f']", "recompile-object", "it is another object now"),
    ("0/0: f(L['x']) ? <m.Key object at 0x7f957bc77710>", "", "recompile-guard", "f(L['x']) ? <m.Key object>"),
    ("0/0: CodeGuardAccessor: Not a function on L['h'].__code__", "h", "recompile-type", "it was a function when this was compiled and is not one now"),
    ("0/0: KeyError on L['d']['a']", "d['a']", "recompile-type", "it was there when this was compiled and is missing now"),
    ("0/0: getattr failed on source L['o'].a", "o.a", "recompile-type", "it was there when this was compiled and is missing now"),
    ("0/0: this is ? no expression", "", "recompile-guard", "this is ? no expression"),
    ("", "", "recompile-guard", ""),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "source", "code", "what", "frames"), FROM_THE_CASES)
def test_reasons_of_the_cases(
    reason: str, source: str, code: str, what: str, frames: tuple[tuple[str, int], ...]
) -> None:
    guard = parse_failed_guard(reason)
    assert (guard.source, guard.code, guard.what, guard.frames) == (source, code, what, frames)


@pytest.mark.parametrize(("reason", "source", "code", "what"), SEEN_ELSEWHERE)
def test_reasons_seen_elsewhere(reason: str, source: str, code: str, what: str) -> None:
    guard = parse_failed_guard(reason)
    assert (guard.source, guard.code, guard.what) == (source, code, what)


def test_every_reason_of_the_cases_is_understood() -> None:
    reasons = [
        reason
        for path in sorted(TRUTH.glob("*.json"))
        for recompile in json.loads(path.read_text(encoding="utf-8"))["recompiles"]
        for reason in recompile["reasons"]
    ]
    assert len(reasons) > 40
    for reason in reasons:
        guard = parse_failed_guard(reason)
        assert guard.code != "recompile-guard", reason
        assert guard.source, reason
        assert "  #" not in guard.text, reason


@pytest.mark.parametrize(
    ("payload", "reasons"),
    [
        ('["0/1: a", "0/0: b"]', ["0/1: a", "0/0: b"]),
        ("0/0: tensor 'x' size mismatch", ["0/0: tensor 'x' size mismatch"]),  # one alone is bare text
        ('"0/0: a"', ["0/0: a"]),
        ("[]", []),
        ('["", " "]', []),
        ("", []),
    ],
)
def test_payloads(payload: str, reasons: list[str]) -> None:
    assert reasons_in(payload) == reasons


@pytest.mark.parametrize(
    ("subject", "what", "sentence"),
    [
        ("`n`", "it was 1 when this was compiled", "`n` was 1 when this was compiled"),
        ("`x`", "size 8 → 5 in dimension 0", "`x`: size 8 → 5 in dimension 0"),
        ("", "it was 1 when this was compiled", "it was 1 when this was compiled"),
    ],
)
def test_the_sentence_names_what_the_guard_watches(subject: str, what: str, sentence: str) -> None:
    assert about(subject, what) == sentence


@pytest.mark.parametrize(
    ("reason", "was", "other"),
    [
        ("0/0: n == 3", "3", ""),
        ("0/0: len(xs) == 2", "2", ""),
        ("0/0: ___check_type_id(layer, 9446), type=<class 'm.Layer'>", "m.Layer", ""),
        ("0/0: ___check_type_id(mode, 9446), type=<class '<run_path>.Mode'>", "<run_path>.Mode", ""),
        ("0/0: x is y", "", "y"),
        ('0/0: Duplicate tensors found: ["x", "y"]', "", "y"),
        ("0/1: n <= 2", "", ""),
    ],
)
def test_what_the_code_was_compiled_for(reason: str, was: str, other: str) -> None:
    guard = parse_failed_guard(reason)
    assert (guard.was, guard.other) == (was, other)


@pytest.mark.parametrize(
    ("reason", "sizes", "state"),
    [
        ("0/0: tensor 'x' size mismatch at index 1. expected 4, actual 5", (4, 5), ""),
        ("0/0: tensor 'x' size mismatch at index 1. expected s0, actual 5", (), ""),
        ("0/0: tensor 'x' stride mismatch at index 1. expected 1, actual 8", (), ""),
        ("0/0: GLOBAL_STATE changed: grad_mode autocast ", (), "grad_mode"),
        ("0/0: GLOBAL_STATE changed", (), ""),
    ],
)
def test_sizes_and_states(reason: str, sizes: tuple[int, ...], state: str) -> None:
    guard = parse_failed_guard(reason)
    assert (guard.sizes, guard.state) == (sizes, state)
