"""Small scripts that recompile, one cause each, and what remains after a hint has been followed."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

Follow = Callable[[str, str], str]
"""Makes the script that follows a hint, from the script and the hint's text."""


@dataclass(frozen=True)
class HintCase:
    """A script, the hint that it gets, and what it leads to.

    Args:
        code: Of the recompilation that has the hint.
        hint: Words that are in this hint and in no other.
        follow: How it is followed.
        said: Words of the finding's message.
        left: How many recompilations remain.
    """

    name: str
    code: str
    source: str
    hint: str
    follow: Follow
    said: str = ""
    left: int = 0


CASES: list[HintCase] = []


def case(name: str, code: str, source: str, hint: str, follow: Follow, said: str = "", left: int = 0) -> None:
    text = "import torch\n\n" + textwrap.dedent(source).strip("\n") + "\n"
    CASES.append(HintCase(name, code, text, hint, follow, said, left))


# --- how a hint is followed: all code comes from its text -------------------------------------------------------------


def before_the_call(source: str, hint: str) -> str:
    """``Before the call on line 7: `code`, and pass `x` in the call``."""
    match = re.match(r"Before the call on line (\d+): `([^`]+)`(, and pass)?", hint)
    assert match is not None, hint
    lines = source.split("\n")
    at = int(match[1]) - 1
    indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    for name, made in re.findall(r"(?:^|; )(\w+) = (.+?)(?=;|$)", match[2]) if match[3] else ():
        assert made in lines[at], (made, lines[at])
        lines[at] = lines[at].replace(made, name)
    lines.insert(at, indent + match[2])
    return "\n".join(lines)


def in_the_call(source: str, hint: str) -> str:
    """``In the call on line 7, pass `new` instead of `old` ``, or ``pass `x.clone()` for `y` ``."""
    match = re.search(r"In the call on line (\d+), pass `([^`]+)` (instead of|for) `([^`]+)`", hint)
    assert match is not None, hint
    lines = source.split("\n")
    at = int(match[1]) - 1
    old = match[4] if match[3] == "instead of" else match[2].removesuffix(".clone()")
    head, found, tail = lines[at].rpartition(old)
    assert found, (old, lines[at])
    lines[at] = head + match[2] + tail
    return "\n".join(lines)


def kept_in_a_tensor(source: str, hint: str) -> str:
    """``torch.tensor(...)`` in place of a number."""
    return re.sub(r"limit = (1\.5|value)\n", r"limit = torch.tensor(\1)\n", source)


def dynamic(source: str, hint: str) -> str:
    """``torch.compile(..., dynamic=True)``."""
    match = re.search(r"`torch\.compile\(\.\.\., ([^`]+)\)`", hint)
    assert match is not None, hint
    source = source.replace("@torch.compile\n", f"@torch.compile({match[1]})\n")
    return re.sub(r"= torch\.compile\((.+)\)\n", rf"= torch.compile(\1, {match[1]})\n", source)


def setting(source: str, hint: str) -> str:
    """``before the first call: `code`, and `torch.compile(..., dynamic=True)` ``."""
    match = re.search(r"[Bb]efore the first call: `([^`]+)`", hint)
    assert match is not None, hint
    return dynamic(source.replace("import torch\n", f"import torch\n{match[1]}\n", 1), hint)


def by_hand(*edits: tuple[str, str]) -> Follow:
    """For a hint that says in words what to do."""

    def follow(source: str, hint: str) -> str:
        for old, new in edits:
            assert old in source, old
            source = source.replace(old, new)
        return source

    return follow


def replaced_by_code(old: str) -> Follow:
    """Puts the hint's last piece of code in the place of ``old``."""

    def follow(source: str, hint: str) -> str:
        assert old in source
        return source.replace(old, re.findall(r"`([^`]+)`", hint)[-1])

    return follow


# --- sizes: how the tensor gets into the function ---------------------------------------------------------------------

MARK = "Before the call on line"
FUNCTION = """
@torch.compile
def f(x):
    return x * 2

"""
case("size_positional", "recompile-size", FUNCTION + """
for n in (4, 5, 6):
    ids = torch.ones(n)
    f(ids)
""", MARK, before_the_call, "This is normal once: PyTorch then makes the size dynamic")  # fmt: skip
case("size_dynamic", "recompile-size", FUNCTION + """
for n in (4, 5, 6):
    f(torch.ones(n))
""", "dynamic=True", dynamic)  # fmt: skip
case("size_of_an_expression", "recompile-size", FUNCTION + """
for n in (4, 5, 6):
    f(torch.ones(n))
""", MARK, before_the_call)  # fmt: skip
case("size_in_a_comprehension", "recompile-size", FUNCTION + """
[f(torch.ones(n)) for n in (4, 5, 6)]
""", "dynamic=True", dynamic)  # fmt: skip
case("size_in_the_line_of_a_loop", "recompile-size", FUNCTION + """
for n in (4, 5, 6): f(torch.ones(n))
""", "dynamic=True", dynamic)  # fmt: skip
case("size_of_a_global", "recompile-size", """
@torch.compile
def f(x):
    return x.sum() + TABLE.sum()

for n in (4, 5, 6):
    TABLE = torch.ones(n)
    f(torch.ones(3))
""", "where it is made", lambda source, hint: source.replace("    f(torch", f"    {re.findall('`([^`]+)`', hint)[-1]}\n    f(torch"))  # fmt: skip
case("size_by_a_partial", "recompile-size", """
import functools

@torch.compile
def f(a, x):
    return x * a

double = functools.partial(f, 2)
for n in (4, 5, 6):
    double(torch.ones(n))
""", "dynamic=True", dynamic)  # fmt: skip
case("size_in_a_trainer", "recompile-size", """
class Trainer:
    def __init__(self):
        self.model = torch.compile(torch.nn.ReLU())

    def step(self, batch):
        with torch.no_grad():
            loss = self.model(
                batch["x"],
            ).sum()
        return loss

trainer = Trainer()
for n in (4, 5, 6):
    trainer.step({"x": torch.ones(n)})
""", 'batch["x"]', before_the_call, '`self.model` was compiled again: `batch["x"]`: size 4 → 5 in dimension 0')  # fmt: skip
case("size_by_map", "recompile-size", FUNCTION + """
list(map(f, [torch.ones(n) for n in (4, 5, 6)]))
""", "dynamic=True", dynamic)  # fmt: skip
case("size_first_call_elsewhere", "recompile-size", FUNCTION + """
a = torch.ones(4)
f(a)
b = torch.ones(5)
f(b)
""", MARK, before_the_call)  # fmt: skip
case("size_unpacked_keywords", "recompile-size", """
class Model(torch.nn.Module):
    def forward(self, **kwargs):
        return kwargs["input_ids"] * 2 + kwargs["mask"]

model = torch.compile(Model())
for n in (4, 5, 6):
    batch = {"input_ids": torch.ones(n, 3), "mask": torch.ones(n, 3)}
    model(**batch)
""", 'batch["input_ids"]', before_the_call)  # fmt: skip
case("size_named_keyword_of_a_wrapper", "recompile-size", """
import functools

def logged(function):
    @functools.wraps(function)
    def wrapper(self, *args, **kwargs):
        return function(self, *args, **kwargs)
    return wrapper

class Model(torch.nn.Module):
    @logged
    def forward(self, input_ids, mask=None):
        return input_ids * 2

model = torch.compile(Model())
for n in (4, 5, 6):
    tokens = torch.ones(n)
    model(input_ids=tokens)
""", "mark_dynamic(tokens, 0)", before_the_call)  # fmt: skip
case("size_positional_of_a_wrapper", "recompile-size", """
def logged(function):
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper

class Model(torch.nn.Module):
    @logged
    def forward(self, input_ids):
        return input_ids * 2

model = torch.compile(Model())
for n in (4, 5, 6):
    tokens = torch.ones(n)
    model(tokens)
""", "mark_dynamic(tokens, 0)", before_the_call)  # fmt: skip
case("size_in_args", "recompile-size", """
@torch.compile
def f(*args):
    return args[0].sum() + args[1].sum()

for n in (4, 5, 6):
    a, b = torch.ones(3), torch.ones(n)
    f(a, b)
""", "mark_dynamic(b, 0)", before_the_call)  # fmt: skip
case("size_unpacked_list", "recompile-size", """
@torch.compile
def f(x, y):
    return x.sum() + y.sum()

for n in (4, 5, 6):
    pair = [torch.ones(3), torch.ones(n)]
    f(*pair)
""", "mark_dynamic(pair[1], 0)", before_the_call)  # fmt: skip
case("size_in_a_dictionary", "recompile-size", """
@torch.compile
def f(batch):
    return batch["x"] + 1

for n in (4, 5, 6):
    data = {"x": torch.ones(n)}
    f(data)
""", 'data["x"]', before_the_call)  # fmt: skip
case("size_of_a_method", "recompile-size", """
class Trainer:
    @torch.compile
    def step(self, x, scale=2):
        return x * scale

trainer = Trainer()

def main():
    for n in (4, 5, 6):
        x = torch.ones(n)
        trainer.step(x)

main()
""", "mark_dynamic(x, 0)", before_the_call)  # fmt: skip
case("size_of_a_module", "recompile-size", """
class Model(torch.nn.Module):
    def forward(self, x, *, factor=1):
        return x * factor

model = torch.compile(Model())
for n in (4, 5, 6):
    x = torch.ones(n)
    y = model(x, factor=2)
""", "mark_dynamic(x, 0)", before_the_call)  # fmt: skip
case("sizes_that_are_shared", "recompile-size", """
@torch.compile
def f(x, y):
    return x * y

for n in (4, 5, 6):
    a, b = torch.ones(n, 3), torch.ones(n, 3)
    f(a, b)
""", "mark_dynamic(b, 0)", before_the_call)  # fmt: skip
case("sizes_that_are_shared_by_expressions", "recompile-size", """
@torch.compile
def f(x, y):
    return x * y

for n in (4, 5, 6):
    f(torch.ones(n), torch.zeros(n))
""", MARK, before_the_call)  # fmt: skip
case("sizes_of_three_of_four", "recompile-size", """
@torch.compile
def f(x, y, z, w):
    return (x + y) @ z + w

w = torch.ones(2)
for n in (4, 5, 6):
    x, y, z = torch.ones(3, n), torch.ones(3, n), torch.ones(n, 2)
    f(x, y, z, w)
""", "mark_dynamic(z, 0)", before_the_call)  # fmt: skip
case("two_dimensions", "recompile-size", FUNCTION + """
for n, m in ((4, 7), (5, 8), (6, 9)):
    x = torch.ones(n, m)
    f(x)
""", "[0, 1]", before_the_call)  # fmt: skip
case("two_dimensions_one_after_the_other", "recompile-size", FUNCTION + """
for n, m in ((4, 7), (5, 7), (6, 7), (6, 9)):
    x = torch.ones(n, m)
    f(x)
""", "[0, 1]", before_the_call)  # fmt: skip
case("size_with_dynamic_false", "recompile-size", """
@torch.compile(dynamic=False)
def f(x):
    return x * 2

for n in (4, 5, 6):
    x = torch.ones(n)
    f(x)
""", MARK, before_the_call, "each new size is one more compile")  # fmt: skip
case("size_after_a_break", "recompile-size", """
@torch.compile
def f(x):
    y = x.sin()
    print("break")
    return x + y

for n in (4, 5, 6):
    x = torch.ones(n, 3)
    f(x)
""", "dynamic=True", dynamic)  # fmt: skip
case("sizes_in_several_functions", "recompile-size", """
class Block(torch.nn.Module):
    def forward(self, x):
        print("break")
        return x * 2

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, x):
        y = self.block(x.sin())
        return y + x

model = torch.compile(Model())
for n in (4, 5, 6):
    model(torch.ones(n, 3))
""", "in all 3 compiled parts", dynamic, "The same change in this call also recompiled `Block.forward, after line")  # fmt: skip
case("size_of_a_weight", "recompile-size", """
class Layer(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(n, 3))

    def forward(self, x):
        return x @ self.weight.t()

@torch.compile
def apply(layer, x):
    return layer(x)

for n in (4, 5, 6):
    apply(Layer(n), torch.ones(2, 3))
""", "force_parameter_static_shapes", setting, "size 5 → 6 in dimension 0. Each new size")  # fmt: skip
case("size_of_a_linear_layer", "recompile-size", """
@torch.compile
def apply(layer, x):
    return layer(x)

for n in (4, 5, 6):
    apply(torch.nn.Linear(n, n), torch.ones(2, n))
""", "force_parameter_static_shapes", setting, "Each new size")  # fmt: skip
case("size_of_a_buffer", "recompile-size", """
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.ones(4))

    def forward(self, x):
        return x + self.cache.sum()

model = torch.compile(Model())
for n in (4, 5, 6):
    model.cache = torch.ones(n)
    model(torch.ones(3))
""", "force_parameter_static_shapes", setting)  # fmt: skip
case("sizes_0_and_1", "recompile-size", FUNCTION + """
for n in (4, 1, 5, 0):
    x = torch.ones(n, 3)
    f(x)
""", "mark_unbacked", before_the_call, "Sizes 0 and 1 always get compiles of their own")  # fmt: skip
case("sizes_0_and_1_shared", "recompile-size", """
@torch.compile
def f(x, y):
    return x * y

for n in (4, 1):
    a, b = torch.ones(n), torch.ones(n)
    f(a, b)
""", "mark_unbacked", before_the_call)  # fmt: skip

# --- values -----------------------------------------------------------------------------------------------------------

case("integer_in_arithmetic", "recompile-value", """
@torch.compile
def f(x, n):
    return x * n

for n in (2, 3, 4):
    f(torch.ones(4), n)
""", "dynamic=True", dynamic)  # fmt: skip
case("integer_as_a_tensor", "recompile-value", """
@torch.compile
def f(x, n):
    return x * n

for n in (2, 3, 4):
    f(torch.ones(4), n)
""", "a tensor", by_hand(("f(torch.ones(4), n)", "f(torch.ones(4), torch.tensor(n))")))  # fmt: skip
case("float_in_arithmetic", "recompile-value", """
@torch.compile
def f(x, n):
    return x * n

for n in (2.5, 3.5, 4.5):
    f(torch.ones(4), n)
""", "dynamic=True", dynamic)  # fmt: skip
case("integer_in_a_branch", "recompile-value", """
@torch.compile
def f(x, n):
    if n > 2:
        return x + 1
    return x - 1

for n in (2, 3, 4, 5, 6):
    f(torch.ones(4), n)
""", "dynamic=True", dynamic, left=1)  # fmt: skip
case("integer_in_a_branch_decided_before", "recompile-value", """
@torch.compile
def f(x, n):
    if n > 2:
        return x + 1
    return x - 1

for n in (2, 3, 4, 5, 6):
    f(torch.ones(4), n)
""", "before the call", by_hand(("if n > 2", "if n"), ("4), n)", "4), n > 2)")), left=1)  # fmt: skip
case("text_in_a_branch", "recompile-value", """
@torch.compile
def f(x, mode):
    if mode == "a":
        return x + 1
    return x - 1

for mode in ("a", "b", "c", "d"):
    f(torch.ones(4), mode)
""", "before the call", by_hand(('if mode == "a"', "if mode"), ("4), mode)", '4), mode == "a")')), "Each new value", left=1)  # fmt: skip
case("flag", "recompile-value", """
@torch.compile
def f(x, flag):
    return -x if flag else x

for flag in (True, False, True, False):
    f(torch.ones(4), flag)
""", "this is normal", by_hand(), "At most two compiles, one for `True` and one for `False`", left=1)  # fmt: skip
case("value_left_by_a_break", "recompile-value", FUNCTION.replace("x * 2", "x * x.max().item()") + """
for n in (2, 3, 4):
    f(torch.full((4,), float(n)))
""", "without the break", by_hand(("x.max().item()", "x.max()")))  # fmt: skip
case("closure_variable", "recompile-value", """
def make():
    limit = 1.5

    def clamp(x):
        return x * limit

    def set_limit(value):
        nonlocal limit
        limit = value

    return clamp, set_limit

clamp, set_limit = make()

@torch.compile
def f(x):
    return clamp(x) + 1

for value in (1.5, 2.5, 3.5):
    set_limit(value)
    f(torch.ones(4))
""", "dynamic=True", dynamic, "`limit` was 1.5 when this was compiled and is 2.5 now")  # fmt: skip

case("closure_variable_that_stays_a_number", "recompile-value", """
def make():
    limit = 1.5

    def clamp(x):
        return x.clamp(max=limit)

    def set_limit(value):
        nonlocal limit
        limit = value

    return clamp, set_limit

clamp, set_limit = make()

@torch.compile
def f(x):
    return clamp(x) + 1

for value in (1.5, 2.5, 3.5):
    set_limit(value)
    f(torch.ones(4))
""", "Make `limit` a tensor", kept_in_a_tensor, "`limit` was 2.5 when this was compiled and is 3.5 now")  # fmt: skip
case("global_number", "recompile-value", """
FACTOR = 2

@torch.compile
def f(x):
    return x * FACTOR

for FACTOR in (2, 3, 4):
    f(torch.ones(4))
""", "torch.tensor(", by_hand(("for FACTOR in (2, 3, 4):", "for FACTOR in map(torch.tensor, (2, 3, 4)):")), "Each new value")  # fmt: skip
case("integer_of_a_module", "recompile-value", """
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = 2

    def forward(self, x):
        return x * self.factor

model = torch.compile(Model())
for factor in (2, 3, 4):
    model.factor = factor
    model(torch.ones(4))
""", "allow_unspec_int_on_nn_module", setting, "Each new value")  # fmt: skip
case("length_of_a_list", "recompile-value", """
@torch.compile
def f(xs):
    return sum(x.sum() for x in xs)

for n in (2, 3, 4):
    f([torch.ones(4)] * n)
""", "torch.stack", by_hand(("sum(x.sum() for x in xs)", "xs.sum()"), ("f([torch.ones(4)] * n)", "f(torch.stack([torch.ones(4)] * n))")), "Each new length", left=1)  # fmt: skip
HISTORY = """
import collections

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.history = []

    def forward(self, x):
        self.history.append(x.sum())
        return x + torch.stack(list(self.history)).mean()

model = torch.compile(Model())
for _ in range(7):
    model(torch.ones(4))
"""
case("growing_list_bounded", "recompile-value", HISTORY, "deque", by_hand(("= []", "= collections.deque(maxlen=2)")), "It grows on line 11 (3, 4, 5, 6)", left=2)  # fmt: skip
case("growing_list_kept_out", "recompile-value", HISTORY, "out of the compiled function", by_hand(
    ("        self.history.append(x.sum())\n        return x + torch.stack(list(self.history)).mean()", "        return x + 1, x.sum()"),
    ("    model(torch.ones(4))", "    y, total = model(torch.ones(4))\n    model.history.append(total)\n    y += torch.stack(model.history).mean()"),
))  # fmt: skip
COUNTER = """
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x / self.calls

model = torch.compile(Model())
for _ in range(5):
    model(torch.ones(4))
"""
case("counter", "recompile-value", COUNTER, "allow_unspec_int_on_nn_module", setting, "It grows on line 9 (1, 2, 3, 4)")  # fmt: skip
case("counter_as_a_tensor", "recompile-value", COUNTER, "register_buffer", by_hand(("self.calls = 0", 'self.register_buffer("calls", torch.zeros(()))')))  # fmt: skip
case("counter_in_a_branch", "recompile-value", COUNTER.replace("return x /", "if self.calls % 2:\n            return x + 1\n        return x /"), "allow_unspec_int_on_nn_module", setting, left=1)  # fmt: skip

# --- modes, kinds of tensors, types -----------------------------------------------------------------------------------

case("train_and_eval", "recompile-global-state", """
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5))
compiled = torch.compile(model)
x = torch.ones(2, 4)
for epoch in range(3):
    model.train()
    compiled(x).sum().backward()
    model.eval()
    with torch.no_grad():
        compiled(x)
""", "", by_hand(), "`compiled` was compiled again: global state changed: grad_mode; and `compiled[1].training` was in train mode when this was compiled. At most two compiles, one with grad mode and one without", left=1)  # fmt: skip
case("train_and_eval_without_no_grad", "recompile-training-mode", """
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5))
compiled = torch.compile(model)
x = torch.ones(2, 4)
for epoch in range(3):
    model.train()
    compiled(x)
    model.eval()
    compiled(x)
""", "this is normal", by_hand(), "`compiled[1].training` was in train mode when this was compiled. At most two compiles, one for train mode and one for eval mode", left=1)  # fmt: skip
case("dtype", "recompile-dtype", FUNCTION + """
for dtype in (torch.float32, torch.float64, torch.float32):
    x = torch.ones(4, dtype=dtype)
    f(x)
""", "In the call", in_the_call, "At most one compile for each dtype")  # fmt: skip
case("dtype_in_a_dictionary", "recompile-dtype", """
@torch.compile
def f(batch):
    return batch["x"] + 1

for dtype in (torch.float32, torch.float64, torch.float32):
    data = {"x": torch.ones(4, dtype=dtype)}
    f(data)
""", "Before the call", before_the_call)  # fmt: skip
case("requires_grad_of_a_weight", "recompile-requires-grad", """
model = torch.nn.Linear(4, 4)
compiled = torch.compile(model)
compiled(torch.ones(4))
model.weight.requires_grad_(False)
compiled(torch.ones(4))
""", "before the first call", by_hand(
    ("compiled(torch.ones(4))\nmodel.weight.requires_grad_(False)", "model.weight.requires_grad_(False)\ncompiled(torch.ones(4))"),
))  # fmt: skip
case("stride", "recompile-stride", FUNCTION + """
x = torch.ones(4, 6)
f(x)
x = torch.ones(6, 4).t()
f(x)
""", "In the call", in_the_call)  # fmt: skip
case("conjugated", "recompile-dispatch", FUNCTION + """
x = torch.ones(2, dtype=torch.complex64)
f(x)
f(x.conj())
""", "In the call", in_the_call)  # fmt: skip
case("requires_grad", "recompile-requires-grad", FUNCTION + """
x = torch.ones(4)
y = torch.ones(4, requires_grad=True)
f(x)
f(y)
""", "detach", replaced_by_code("f(y)"), "At most two compiles, one with gradients and one without")  # fmt: skip
case("rank", "recompile-rank", FUNCTION + """
x = torch.ones(4)
f(x.reshape(1, 4))
f(x)
""", "same number of dimensions", by_hand(("f(x)\n", "f(x.unsqueeze(0))\n")), "At most one compile for each number of dimensions")  # fmt: skip
case("type_of_a_number_and_a_tensor", "recompile-type", """
@torch.compile
def f(x, y):
    return x + y

z = 2
f(torch.ones(4), torch.tensor(1))
f(torch.ones(4), z)
""", "In the call", in_the_call, "`y` was a tensor when this was compiled and is a `int` now")  # fmt: skip
case("type_of_a_module", "recompile-type", """
@torch.compile
def f(layer, x):
    return layer(x)

for layer in (torch.nn.ReLU(), torch.nn.GELU(), torch.nn.ReLU(), torch.nn.GELU()):
    f(layer, torch.ones(4))
""", "Each type is other code", by_hand(), "`layer` was a `ReLU` when this was compiled and is a `GELU` now. At most one compile for each type", left=1)  # fmt: skip
case("object", "recompile-object", """
@torch.compile
def f(x, layer):
    return layer(x)

def make():
    def layer(x):
        return x + 1
    return layer

layer = None
for _ in range(3):
    layer = make()
    f(torch.ones(4), torch.sin if _ else torch.cos)
""", "Create `layer` once", by_hand(("torch.sin if _ else torch.cos", "torch.sin")), "Each other object")  # fmt: skip
case("object_in_a_branch", "recompile-object", """
import enum

class Mode(enum.Enum):
    FAST = 1
    SLOW = 2

@torch.compile
def f(x, mode):
    return x + 1 if mode is Mode.FAST else x - 1

for mode in (*Mode, *Mode):
    f(torch.ones(4), mode)
""", "this is normal", by_hand(), "One compile for each member that is passed, and no more", left=1)  # fmt: skip
ALIASED = """
@torch.compile
def f(x, y):
    return x * y

a, b = torch.ones(4), torch.ones(4)
"""
case("another_backend", "recompile-backend", """
def f(x):
    return x * 2

first = torch.compile(f, backend="eager")
second = torch.compile(f, backend="aot_eager")
first(torch.ones(3))
second(torch.ones(3))
""", "Compile it once", by_hand(("second(", "first(")), "it is compiled with another backend")  # fmt: skip
case("a_backend_made_anew", "recompile-backend", """
def f(x):
    return x * 2

for _ in range(2):
    torch.compile(f, backend=lambda graph, inputs: graph)(torch.ones(3))
""", "Compile it once", by_hand(
    ("for _ in", "compiled = torch.compile(f, backend=lambda graph, inputs: graph)\nfor _ in"),
    ("    torch.compile(f, backend=lambda graph, inputs: graph)(", "    compiled("),
))  # fmt: skip
case("aliased_in_a_later_call", "recompile-aliasing", ALIASED.replace("return", "x.add_(1)\n    return") + "f(a, b)\nf(a, a)\n", "clone", in_the_call, "`x` and `y` are one tensor now. At most two compiles")  # fmt: skip
case("aliased_in_the_first_call", "recompile-aliasing", ALIASED + "f(a, a)\nf(a, b)\n", "clone", in_the_call, "`x` and `y` were one object when this was compiled. At most two compiles")  # fmt: skip

case("a_schedule_of_the_learning_rate", "recompile-value", """
net = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(opt, step_size=1)

@torch.compile
def step(x):
    opt.step()
    return x + 1

for _ in range(2):
    net(torch.ones(4)).backward()
    step(torch.ones(3))
    schedule.step()
""", "lr=torch.tensor(...)", by_hand(("lr=0.1", "lr=torch.tensor(0.1)")), "Each new value is one more compile")  # fmt: skip

# --- settings of PyTorch as a whole, and conditions -------------------------------------------------------------------

STATE = """
@torch.compile
def f(x):
    return x @ x
"""
ONCE = "Set it once, before the first call"
case("default_dtype", "recompile-global-state", STATE + """
f(torch.ones(4, 4, dtype=torch.float64))
torch.set_default_dtype(torch.float64)
f(torch.ones(4, 4, dtype=torch.float64))
torch.set_default_dtype(torch.float32)
""", ONCE, by_hand(("f(torch.ones(4, 4, dtype=torch.float64))\ntorch.set_default_dtype(torch.float64)\n", "torch.set_default_dtype(torch.float64)\n")), "default_dtype. One compile for each setting")  # fmt: skip
case("deterministic_algorithms", "recompile-global-state", STATE + """
f(torch.ones(4, 4))
torch.use_deterministic_algorithms(True)
f(torch.ones(4, 4))
f(torch.zeros(4, 4))
torch.use_deterministic_algorithms(False)
""", ONCE, by_hand(("f(torch.ones(4, 4))\ntorch.use_deterministic_algorithms(True)\n", "torch.use_deterministic_algorithms(True)\n")), "deterministic_algorithms")  # fmt: skip
case("autocast", "recompile-global-state", STATE + """
f(torch.ones(4, 4))
for _ in range(2):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        f(torch.ones(4, 4))
""", ONCE, by_hand(("\nf(torch.ones(4, 4))\nfor", "\nfor")), "autocast(cpu)")  # fmt: skip
CONDITION = """
@torch.compile(dynamic=True)
def f(x):
    if x.shape[0] > 6:
        return x + 1
    return x - 1

for n in (9, 8, 3, 4, 7, 5):
    f(torch.ones(n, 4))
"""
case("condition_on_one_side", "recompile-condition", CONDITION, "Keep the values on one side", by_hand(("(9, 8, 3, 4, 7, 5)", "(9, 8, 7)")), "no longer holds")  # fmt: skip
case("condition_warmed_up", "recompile-condition", CONDITION.replace("(9, 8, 3", "(3, 4, 9, 8, 3"), "or warm up both", by_hand(), "2 <= x.size()[0] <= 6` no longer holds. The size is 9", left=1)  # fmt: skip
DUCK_SIZING = """
@torch.compile(dynamic=True)
def f(x):
    return x * 2

for sizes in ((8, 8), (8, 9), (7, 12)):
    f(torch.ones(sizes))
"""
case("one_symbol_for_two_sizes", "recompile-condition", DUCK_SIZING, "Make the first call with sizes that differ", by_hand(("(8, 8), (8, 9)", "(8, 9), (8, 8)")), "Both sizes were 8 when this was compiled, so PyTorch took them for one (duck sizing)")  # fmt: skip
case("no_symbol_for_two_sizes", "recompile-condition", DUCK_SIZING, "Or before the first call: `torch.fx.experimental._config", by_hand(("@torch.compile", "torch.fx.experimental._config.use_duck_shape = False\n@torch.compile")))  # fmt: skip
case("device", "recompile-device", FUNCTION + """
for device in ("cpu", "meta", "cpu", "meta"):
    f(torch.ones(4, device=device))
""", "one device", by_hand(('("cpu", "meta", "cpu", "meta")', '("meta",) * 4')), "`x` was on `cpu` and is on `meta` now. At most one compile for each device")  # fmt: skip
