"""The guards of a compile, read from what torch 2.13 printed for a small module (`guards/module.txt`).

The module was called with sizes 2 and 3, then with n = 5, then without grad; its file was /home/me/net/model.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from facts import a_compile
from irscope.ir.guards import Guard, guards_of, on_argument
from irscope.protocol import Compile, Origin

TEXT = (Path(__file__).parent / "guards" / "module.txt").read_text(encoding="utf-8")
FILE = "/home/me/net/model.py"
SIZE = "tensor 'x' size mismatch at index 0. expected 2, actual 3"
VALUE = (
    "n == 2                                                   # return y.repeat(n, 1)  # me/net/model.py:14 in forward\n"
    f'User stack trace:\n  File "{FILE}", line 14, in forward\n    return y.repeat(n, 1)'
)


def compiles(*reasons: tuple[str, ...]) -> list[Compile]:
    """Compile 0/0, 0/1, …, each with the reasons for it."""
    return [a_compile(id=f"0/{number}", file=FILE, reasons=why) for number, why in enumerate(reasons)]


def read(*reasons: tuple[str, ...], text: str = TEXT) -> list[Guard]:
    run = compiles((), *reasons)
    return list(guards_of(run[0], text, run).guards)


def one(guards: list[Guard], kind: str, source: str) -> Guard:
    (found,) = [guard for guard in guards if (guard.kind, guard.source) == (kind, source)]
    return found


def test_every_guard_of_the_text_is_there() -> None:
    guards = read()
    assert len(guards) == TEXT.count("+- ") - TEXT.count("+- GuardManager") - TEXT.count("+- RootGuardManager")
    assert len(guards) == 46
    assert all(guard.check and guard.failed == 0 for guard in guards)


@pytest.mark.parametrize(
    ("kind", "source", "line", "code"),
    [
        ("EQUALS_MATCH", "n", 14, "return y.repeat(n, 1)"),
        ("EQUALS_MATCH", "SCALE", 13, "y = self.drop(self.fc(x)) * SCALE"),
        ("TYPE_MATCH", "self", 13, "y = self.drop(self.fc(x)) * SCALE"),
    ],
)
def test_a_guard_has_the_line_that_made_it(kind: str, source: str, line: int, code: str) -> None:
    guard = one(read(), kind, source)
    assert (guard.origin, guard.code) == (Origin(FILE, line), code)


def test_a_guard_without_a_line() -> None:
    guard = one(read(), "TORCH_FUNCTION_MODE_STACK", "")
    assert (guard.origin, guard.code, guard.check) == (None, "", "___check_torch_function_mode_stack()")


def test_a_guard_with_a_place_but_no_code() -> None:
    guard = one(read(), "DEFAULT_DEVICE", "")
    assert guard.origin == Origin("_dynamo/output_graph.py", 1122)
    assert (guard.check, guard.code) == ("utils_device.CURRENT_DEVICE == None", "")


def test_a_line_of_a_library_keeps_its_printed_path() -> None:
    guard = one(read(), "TRUE_MATCH", "self.drop.training")
    assert guard.origin == Origin("nn/modules/dropout.py", 73)
    assert guard.check == "L['self']._modules['drop'].training == True"


def test_two_files_that_end_alike_are_not_told_apart() -> None:
    run = [a_compile(id="0/0", file=FILE, reasons=()), a_compile(id="1/0", file="/tmp" + FILE, reasons=())]
    assert one(list(guards_of(run[0], TEXT, run).guards), "EQUALS_MATCH", "n").origin == Origin("me/net/model.py", 14)


def test_the_latency_is_of_all_of_them() -> None:
    run = compiles(())
    assert guards_of(run[0], TEXT, run).latency == pytest.approx(float(TEXT.rpartition("latency = ")[2].split()[0]))
    assert guards_of(run[0], TEXT.rpartition("Guard latency")[0], run).latency is None
    assert guards_of(run[0], "", run).guards == ()


@pytest.mark.parametrize(
    ("reason", "kind", "source"),
    [
        (SIZE, "TENSOR_MATCH", "x"),
        (VALUE, "EQUALS_MATCH", "n"),
        ("GLOBAL_STATE changed: grad_mode ", "GLOBAL_STATE", ""),
        ("self._modules['drop'].training == True", "TRUE_MATCH", "self.drop.training"),
        ("tensor 'self._modules['fc']._parameters['weight']' requires_grad mismatch. expected requires_grad=1", "TENSOR_MATCH", "self.fc.weight"),
    ],
)  # fmt: skip
def test_the_guard_that_failed_is_marked(reason: str, kind: str, source: str) -> None:
    guards = read((f"0/0: {reason}",))
    assert one(guards, kind, source).failed == 1
    assert [(guard.kind, guard.source) for guard in guards if guard.failed] == [(kind, source)]


def test_an_object_of_another_type() -> None:
    (line,) = [line for line in TEXT.split("\n") if "TYPE_MATCH: ___check_type_id(L['self'], " in line]
    printed = line.partition("TYPE_MATCH: ")[2].partition("  #")[0].replace("L['self']", "self")
    assert printed.endswith(", type=<class '__main__.Net'>")
    assert [g.source for g in read((f"0/0: {printed}",)) if g.failed] == ["self"]


def test_only_the_first_reason_of_a_compile_counts_and_only_those_of_this_compile() -> None:
    guards = read((f"0/0: {SIZE}",), (f"0/1: {VALUE}", f"0/0: {SIZE}"), (f"0/0: {SIZE}",))
    assert one(guards, "TENSOR_MATCH", "x").failed == 2
    assert one(guards, "EQUALS_MATCH", "n").failed == 0


def test_a_compile_after_reset_has_failures_of_its_own() -> None:
    run = [
        a_compile(id="0/0", file=FILE, reasons=()),
        a_compile(id="0/0#2", file=FILE, reasons=()),
        a_compile(id="0/1#2", file=FILE, reasons=(f"0/0: {SIZE}",)),
    ]
    assert [g.source for g in guards_of(run[0], TEXT, run).guards if g.failed] == []
    assert [g.source for g in guards_of(run[1], TEXT, run).guards if g.failed] == ["x"]


def test_the_guards_on_an_argument() -> None:
    guards = read()
    assert {guard.source for guard in on_argument(guards, "n")} == {"n"}
    assert {guard.kind for guard in on_argument(guards, "x")} == {"TENSOR_MATCH", "DIMENSION_DYNAMIC_MARKING_GUARD"}
    assert {"self", "self.fc", "self.drop.p", "self.fc.weight"} <= {g.source for g in on_argument(guards, "self")}
    assert on_argument(guards, "nn") == on_argument(guards, "S") == []
    assert on_argument([Guard("TENSOR_MATCH", "", "xs[0]", None, "", 0)], "xs") != []


def test_what_each_guard_costs() -> None:
    run = compiles(())
    kinds = [guard.kind for guard in read()]
    costs = [[kind, 1, float(number)] for number, kind in enumerate(kinds)]
    found = guards_of(run[0], TEXT, run, costs).guards
    assert [guard.nanoseconds for guard in found] == [float(number) for number in range(len(kinds))]


def test_a_guard_of_several_lines_has_its_cost_on_the_first() -> None:
    run = compiles(())
    text = "+- LAMBDA_GUARD: 2 <= L['x'].size()[0]\n+- LAMBDA_GUARD: L['x'].size()[0] <= 9\n+- TYPE_MATCH: ___check_type_id(L['x'], 1)\n"
    costs = [["LAMBDA_GUARD", 2, 215.0], ["TYPE_MATCH", 1, None]]
    assert [guard.nanoseconds for guard in guards_of(run[0], text, run, costs).guards] == [215.0, None, None]


def test_costs_of_other_guards_are_not_used() -> None:
    run = compiles(())
    for costs in (None, [], [["TYPE_MATCH", 1, 3.0]], [["TYPE_MATCH", 1, 3.0]] * len(read())):
        assert {guard.nanoseconds for guard in guards_of(run[0], TEXT, run, costs).guards} == {None}


def test_a_guard_of_the_code_generator_is_not_the_users() -> None:
    text = (
        "+- LAMBDA_GUARD: 2 <= L['x'].size()[1] <= 4096  # h = x.exp()  # me/model.py:18 in dyn (user code shown is first "
        "use of this value--the guard itself is not due user code) and (_inductor/codegen/cpp.py:2273 in need_use)\n"
        "+- LAMBDA_GUARD: L['x'].size()[1] > 3  # if x.shape[1] > 3:  # me/model.py:17 in dyn\n"
    )
    made, own = guards_of(a_compile(), text, [a_compile()]).guards
    assert made.origin == Origin("_inductor/codegen/cpp.py", 2273) and made.code == ""
    assert made.check == "2 <= L['x'].size()[1] <= 4096"
    assert own.origin is not None and (own.origin.line, own.code) == (17, "if x.shape[1] > 3:")
