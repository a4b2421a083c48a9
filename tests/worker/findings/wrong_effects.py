"""Functions of one script, each with an effect of another kind, and what makes that effect a wrong one.

``$`` is the number of a function, so that no two share a name.  All have the break that the fix of `wrong_fixes` repairs.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from wrong_fixes import BREAK, FIX

HEAD = """\
import array, collections, contextvars, dataclasses, functools, io, itertools, logging, os, queue, random, sys, threading
import types, warnings
import numpy, torch
from collections import Counter, OrderedDict, defaultdict, deque

log = logging.getLogger('own')
"""
CALLS = "for i in range(4):\n    f$(torch.full((3,), i * 40.0))\n"
STEPPED = "for i in range(3):\n    net$(torch.ones(2, 3)).sum().backward()\n    f$(torch.full((3,), i * 40.0))\n"
NET = "net$ = torch.nn.Linear(3, 3)\n"
OPTIMIZER = f"{NET}opt$ = torch.optim.AdamW(net$.parameters(), lr=0.1)\n"
STEP = "loss = net$(x[None]).pow(2).mean()\nloss.backward()\nopt$.step()\nopt$.zero_grad()\n"


@dataclass(frozen=True)
class Effect:
    """A function with a body after the break.

    Args:
        above: What is before the function.
        change: A text in the body or the result, and the wrong one.
        is_seen_by_text: Whether only the comparison of texts sees the change, and no run.
    """

    body: str
    change: tuple[str, str]
    above: str = ""
    result: str = "x * 2"
    calls: str = CALLS
    arguments: str = "x"

    def text(self, number: int, is_fixed: bool, is_wrong: bool) -> str:
        """The part of the script with this function."""
        inside = f"{self.body.strip()}\nreturn {self.result}\n".lstrip("\n")
        if is_wrong:
            assert self.change[0] in inside, self
            inside = inside.replace(*self.change, 1)
        function = (
            f"@torch.compile\ndef f$({self.arguments}):\n{FIX if is_fixed else BREAK}{textwrap.indent(inside, '    ')}"
        )
        return f"{self.above}\n\n{function}\n\n{self.calls}".replace("$", str(number))


def script(is_fixed: bool, is_wrong: bool, effects: dict[str, Effect]) -> str:
    """The whole script."""
    return HEAD + "".join(effect.text(number, is_fixed, is_wrong) for number, effect in enumerate(effects.values()))


EFFECTS = {
    # --- training ---
    "a scaler's update is lost": Effect(
        "scaler$.scale(net$(x[None]).pow(2).mean()).backward()\nscaler$.step(opt$)\nscaler$.update()\nopt$.zero_grad()",
        ("scaler$.update()\n", "scaler$.update(8.0)\n"),
        above=f"{OPTIMIZER}scaler$ = torch.amp.GradScaler('cpu', init_scale=64.0)\n",
    ),
    "a scaler's step without unscaling": Effect(
        "scaler$.scale(net$(x[None]).pow(2).mean()).backward()\nscaler$.step(opt$)\nscaler$.update()\nopt$.zero_grad()",
        ("scaler$.step(opt$)\nscaler$.update()", "opt$.step()"),
        above=f"{NET}opt$ = torch.optim.SGD(net$.parameters(), lr=0.1)\nscaler$ = torch.amp.GradScaler('cpu', init_scale=64.0)\n",
    ),
    "a schedule's step is lost": Effect(
        STEP + "schedule$.step()", ("schedule$.step()", "schedule$.get_last_lr()"),
        above=f"{OPTIMIZER}schedule$ = torch.optim.lr_scheduler.StepLR(opt$, 1, 0.5)\n",
    ),
    "an average with another weight": Effect(
        "with torch.no_grad():\n    for a, b in zip(ema$.parameters(), net$.parameters()):\n        a.lerp_(b, 0.1)",
        ("0.1", "0.2"), above=f"{NET}ema$ = torch.nn.Linear(3, 3)\n",
    ),
    "an averaged model is not updated": Effect(
        "average$.update_parameters(net$)", ("average$.update_parameters(net$)", "list(average$.parameters())"),
        above=f"{NET}average$ = torch.optim.swa_utils.AveragedModel(net$)\n",
    ),
    "running statistics twice": Effect(
        "y = norm$(x[None].repeat(2, 1))", ("y = norm$", "y = norm$(x[None].repeat(2, 1)); y = norm$"),
        above="norm$ = torch.nn.BatchNorm1d(3)\n",
    ),
    "running statistics with another momentum": Effect(
        "y = torch.nn.functional.batch_norm(x[None].repeat(2, 1), mean$, var$, training=True, momentum=0.1)",
        ("0.1", "0.3"), above="mean$, var$ = torch.zeros(3), torch.ones(3)\n",
    ),
    "hooks are skipped": Effect(
        "y = net$(x)", ("net$(x)", "net$.forward(x)"),
        above=NET + "seen$ = []\nnet$.register_forward_hook(lambda m, a, r: seen$.append(1))\n",
    ),
    "a parameter is frozen": Effect(
        "net$.weight.requires_grad_(True)", ("(True)", "(False)"), above=NET,
    ),
    "the gradient is accumulated twice": Effect(
        "loss = net$(x).sum()\nloss.backward(retain_graph=True)",
        ("loss.backward(retain_graph=True)", "loss.backward(retain_graph=True); loss.backward()"), above=NET,
    ),
    "another learning rate": Effect(
        "opt$.param_groups[0]['lr'] = 0.5", ("0.5", "0.25"), above=OPTIMIZER,
    ),
    "gradients are clipped otherwise": Effect(
        "net$(x[None]).sum().backward()\ntorch.nn.utils.clip_grad_norm_(net$.parameters(), 1.0)", (", 1.0", ", 2.0"), above=NET,
    ),
    "gradients of zeros in place of none": Effect(
        STEP, ("zero_grad()", "zero_grad(set_to_none=False)"), above=OPTIMIZER,
    ),
    "weight decay is changed": Effect(
        STEP + "for group in opt$.param_groups:\n    group['weight_decay'] = 0.1", ("0.1", "0.0"), above=OPTIMIZER,
    ),
    "a state without its gradient": Effect(
        "global hidden$\nhidden$ = w$ * x.sum()", ("w$ * x.sum()", "(w$ * x.sum()).detach()"),
        above="w$ = torch.ones(3, requires_grad=True)\nhidden$ = None\n",
    ),
    "a buffer that is saved": Effect(
        "net$.register_buffer('n', torch.zeros(1), persistent=False)", ("=False", "=True"), above=NET,
    ),
    "a key of the state": Effect(
        "net$.register_buffer('n', torch.zeros(1))", ("'n'", "'m'"), above=NET,
    ),
    "the mode of one part": Effect(
        "net$[0].eval()", ("net$[0].eval()", "net$[0].train()"),
        above="net$ = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Dropout())\n",
    ),
    # --- results ---
    "other strides": Effect("y = x[None].repeat(2, 1)", ("y.t(", "y.t().contiguous("), result="y.t()"),
    "another memory format": Effect(
        "y = x.sum() + torch.ones(2, 3, 4, 4)", ("y.contiguous(memory_format=torch.channels_last)", "y.contiguous()"),
        result="y.contiguous(memory_format=torch.channels_last)",
    ),
    "two results that were the same": Effect("y = x + 1", ("return y, y", "return y, y.clone()"), result="y, y"),
    "two results that are the same": Effect("y = x + 1", ("return y, y.clone()", "return y, y"), result="y, y.clone()"),
    "another order of keys": Effect(
        "", ("{'a': x * 2, 'b': x * 3}", "{'b': x * 3, 'a': x * 2}"), result="{'a': x * 2, 'b': x * 3}",
    ),
    "a set in place of a list": Effect("", ("[1, 2]", "{1, 2}"), result="x * 2, [1, 2]"),
    "an empty set": Effect("", ("[]", "set()"), result="x * 2, []"),
    "another class of dictionary": Effect("", ("OrderedDict(", "dict("), result="OrderedDict(a=x * 2)"),
    "another default": Effect(
        "y = defaultdict(int)\ny['a'] = x * 2", ("defaultdict(int)", "dict()"), result="y",
    ),
    "a parameter in place of a tensor": Effect(
        "", ("x * 2", "torch.nn.Parameter(x * 2, requires_grad=False)"), calls=CALLS,
    ),
    # --- containers ---
    "bytes that grow": Effect("buf$.write(b'ab')", ("b'ab'", "b'abc'"), above="buf$ = io.BytesIO()\n"),
    "a text that grows": Effect("buf$.write('ab')", ("'ab'", "'ba'"), above="buf$ = io.StringIO()\n"),
    "a buffer made global": Effect(
        "buf = io.BytesIO()\nbuf.write(b'ab')\nn = len(buf.getvalue())", ("buf = io.BytesIO()", "buf = kept$"),
        above="kept$ = io.BytesIO()\n",
    ),
    "a list made global": Effect("kept = []\nkept.append(1)", ("kept = []", "kept = kept$"), above="kept$ = []\n"),
    "a bytearray": Effect("kept$.extend(b'a')", ("b'a'", "b'b'"), above="kept$ = bytearray()\n"),
    "an array": Effect("kept$.append(1)", ("append(1)", "append(2)"), above="kept$ = array.array('i')\n"),
    "a NumPy array": Effect("kept$[0] += 1", ("+= 1", "+= 2"), above="kept$ = numpy.zeros(3)\n"),
    "a deque": Effect("kept$.append(1)", ("append(", "appendleft("), above="kept$ = deque([0], maxlen=3)\n"),
    "a counter": Effect("kept$['a'] += 1", ("'a'] += 1", "'a'] += 2"), above="kept$ = Counter()\n"),
    "an ordered dictionary": Effect(
        "kept$.move_to_end('a')", ("'a'", "'b'"), above="kept$ = OrderedDict(a=1, b=2)\n",
    ),
    "the order of entries": Effect(
        "kept$.clear()\nkept$['a'] = 1\nkept$['b'] = 2",
        ("kept$['a'] = 1\n    kept$['b'] = 2" if False else "kept$['a'] = 1\nkept$['b'] = 2", "kept$['b'] = 2\nkept$['a'] = 1"),
        above="kept$ = {}\n",
    ),
    "a tuple in a list": Effect("kept$.append([1, 2])", ("[1, 2]", "(1, 2)"), above="kept$ = []\n"),
    "a frozen set in a dictionary": Effect(
        "kept$['a'] = set()", ("set()", "frozenset()"), above="kept$ = {'a': None}\n",
    ),
    "a queue": Effect("kept$.put(1)", ("put(1)", "put(2)"), above="kept$ = queue.Queue()\n"),
    "a namespace": Effect("kept$.a = 1", ("a = 1", "a = 2"), above="kept$ = types.SimpleNamespace(a=0)\n"),
    "slots": Effect(
        "kept$.a = 1", ("a = 1", "a = 2"),
        above="class Slots$:\n    __slots__ = ('a',)\n\n\nkept$ = Slots$()\nkept$.a = 0\n",
    ),
    "a field": Effect(
        "kept$.a = 1", ("a = 1", "a = 2"), above="@dataclasses.dataclass\nclass Data$:\n    a: int = 0\n\n\nkept$ = Data$()\n",
    ),
    "an attribute of a class": Effect("K$.n = 1", ("n = 1", "n = 2"), above="class K$:\n    n = 0\n"),
    "an attribute of a function": Effect("g$.n = 1", ("n = 1", "n = 2"), above="def g$():\n    pass\n\n\ng$.n = 0\n"),
    "a derived list": Effect(
        "kept$.append(1)", ("append(1)", "append(2)"), above="class L$(list):\n    pass\n\n\nkept$ = L$()\n",
    ),
    "a list in a list": Effect("kept$[0].append(x * 1)", ("x * 1", "x * 2"), above="kept$ = [[]]\n"),
    "the copy of an input": Effect("kept$.append(x)", ("append(x)", "append(x.clone())"), above="kept$ = []\n"),
    "a variable of a context": Effect(
        "v$.set(1)", ("set(1)", "set(2)"), above="v$ = contextvars.ContextVar('v$', default=0)\n",
    ),
    "a variable of a thread": Effect("v$.n = 1", ("n = 1", "n = 2"), above="v$ = threading.local()\nv$.n = 0\n"),
    "an event": Effect("v$.set()", ("set()", "clear()"), above="v$ = threading.Event()\n"),
    # --- positions and streams ---
    "a generator's numbers": Effect(
        "y = x + torch.rand(3, generator=g$)",
        ("y = x", "torch.rand(3, generator=g$)\ny = x"), above="g$ = torch.Generator().manual_seed(0)\n",
    ),
    "an iterator": Effect("next(v$)", ("next(v$)", "next(v$); next(v$)"), above="v$ = iter(range(1000))\n"),
    "a list's iterator": Effect("next(v$)", ("next(v$)", "next(v$); next(v$)"), above="v$ = iter(list(range(1000)))\n"),
    "a generator": Effect("next(v$)", ("next(v$)", "next(v$); next(v$)"), above="v$ = (i for i in range(1000))\n"),
    "a cycle": Effect("next(v$)", ("next(v$)", "next(v$); next(v$)"), above="v$ = itertools.cycle([1, 2, 3])\n"),
    "NumPy's stream": Effect("numpy.random.rand(2)", ("rand(2)", "rand(3)")),
    "a stream of NumPy's": Effect("v$.random(2)", ("(2)", "(3)"), above="v$ = numpy.random.default_rng(0)\n"),
    "a stream of Python's": Effect("v$.random()", ("random()", "gauss()"), above="v$ = random.Random(0)\n"),
    # --- the process ---
    "autocast stays on": Effect(
        "torch.set_autocast_enabled('cpu', False)", ("False", "True"), calls=CALLS + "torch.set_autocast_enabled('cpu', False)\n",
    ),
    "the precision": Effect("torch.set_float32_matmul_precision('highest')", ("'highest'", "'high'")),
    "deterministic algorithms": Effect("torch.use_deterministic_algorithms(False)", ("(False", "(True, warn_only=True")),
    "the level of a logger": Effect("log.setLevel(logging.INFO)", ("INFO", "ERROR")),
    "a handler": Effect("log.handlers[:] = []", ("[]", "[logging.NullHandler()]")),
    "a filter of warnings": Effect("warnings.simplefilter('ignore')", ("'ignore'", "'error'")),
    "the path of imports": Effect("sys.path.append('a$')", ("'a$'", "'b$'")),
    # --- errors ---
    "a class of errors": Effect(
        "if x.shape[0] == 5:\n    raise A$('five')", ("A$", "B$"),
        above="class A$(Exception):\n    pass\n\n\nclass B$(Exception):\n    pass\n",
        calls=CALLS + "try:\n    f$(torch.ones(5))\nexcept Exception:\n    pass\n",
    ),
    "the words of an error": Effect(
        "if x.shape[0] == 5:\n    raise ValueError('five')", ("'five'", "'six'"),
        calls=CALLS + "try:\n    f$(torch.ones(5))\nexcept ValueError:\n    pass\n",
    ),
}  # fmt: skip
