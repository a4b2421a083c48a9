"""Changes of scripts that remove a graph break: each is right, and wrong with one more change of a single effect.

All scripts have the break `BREAK`, which `FIX` repairs.  A case is a script and what makes its fix a wrong one: texts that are
replaced in the repaired script.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

BREAK = "    if x.sum() > 100:\n        x = x - 1\n"
FIX = "    x = torch.where(x.sum() > 100, x - 1, x)\n"
HEAD = "import logging\nimport torch\n\nlogging.basicConfig(level=logging.INFO)\nlog = logging.getLogger('own')\n"
CALLS = "for i in range(4):\n    out = f(torch.full((3,), float(i * 40)))\n    print(out.sum().item())\n"
TRAINED = "for i in range(4):\n    f(torch.full((3,), i * 40.0)).backward()\n"
NET = "net = torch.nn.Linear(3, 3)\n"


@dataclass(frozen=True)
class Case:
    """A script with its break, the repaired one, and the repaired one with a wrong effect."""

    script: str
    right: str
    wrong: str


def _case(script: str, *changes: tuple[str, str]) -> Case:
    right = script.replace(BREAK, FIX).replace(textwrap.indent(BREAK, "    "), textwrap.indent(FIX, "    "))
    wrong = right
    for old, new in changes:
        assert old in wrong, (old, wrong)
        wrong = wrong.replace(old, new, 1)
    assert script != right != wrong
    return Case(script, right, wrong)


def _function(
    body: str,
    *changes: tuple[str, str],
    above: str = "",
    result: str = "x * 2",
    calls: str = CALLS,
    arguments: str = "x",
) -> Case:
    """A compiled function with the break, and then ``body``."""
    inner = textwrap.indent(body, "    ") + ("\n" if body else "")
    text = f"{HEAD}{above}\n\n@torch.compile\ndef f({arguments}):\n{BREAK}{inner}    return {result}\n\n\n{calls}"
    return _case(text, *changes)


def _module(init: str, body: str, *changes: tuple[str, str], calls: str = "") -> Case:
    """A compiled module with the break, and then ``body``."""
    text = (
        f"{HEAD}\n\nclass M(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"        self.linear = torch.nn.Linear(3, 3)\n        {init}\n\n    def forward(self, x):\n"
        f"{textwrap.indent(BREAK, '    ')}        {body}\n        return self.linear(x)\n\n\nm = M()\nf = torch.compile(m)\n"
    )
    return _case(text + (calls or "for i in range(4):\n    f(torch.full((3,), i * 40.0)).sum().backward()\n"), *changes)


_ARGUMENT = "for i in range(4):\n    f(torch.full((3,), i * 40.0), s)\n"
_OWN = "class S:\n    n = 0\n\n\ns = S()\n"
_OPTIMIZER = f"{NET}opt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
_ALIAS = "a = torch.full((3,), 200.0)\nfor i in range(3):\n    f(a)\n"

CASES = {
    # --- globals, closures, arguments ---
    "a global counter": _function("global count\ncount += 1", ("count += 1", "count += 2"), above="count = 0"),
    "a global counter is lost": _function(
        "global count\ncount += 1", ("    count += 1\n", "    pass\n"), above="count = 0"
    ),
    "a global flag": _function(
        "global on\non = True", ("on = True\n    return", "on = False\n    return"), above="on = False"
    ),
    "a global text": _function("global last\nlast = 'a'", ("last = 'a'", "last = 'b'"), above="last = ''"),
    "a global tensor": _function("state.add_(1)", ("state.add_(1)", "state.add_(2)"), above="state = torch.zeros(3)"),
    "a global tensor is lost": _function("state.add_(1)", ("    state.add_(1)\n", ""), above="state = torch.zeros(3)"),
    "a global tensor is rebound": _function(
        "global last\nlast = x * 1", ("last = x * 1", "last = x * 3"), above="last = None"
    ),
    "a global dictionary": _function("seen['a'] = 1", ("= 1\n    return", "= 2\n    return"), above="seen = {'a': 0}"),
    "an entry is lost": _function("seen['a'] = 1", ("    seen['a'] = 1\n", ""), above="seen = {'a': 0}"),
    "another entry": _function("seen['a'] = 1", ("seen['a'] = 1", "seen['b'] = 1"), above="seen = {'a': 0, 'b': 0}"),
    "an attribute": _function("s.n += 1", ("s.n += 1", "s.n += 2"), above=_OWN),
    "an attribute of an argument": _function(
        "s.n = 1", ("s.n = 1", "s.n = 2"), above=_OWN, arguments="x, s", calls=_ARGUMENT
    ),
    "an attribute of an argument is lost": _function(
        "s.n = 1", ("    s.n = 1\n", ""), above=_OWN, arguments="x, s", calls=_ARGUMENT
    ),
    "a tensor of an argument": _function(
        "s.n = x * 1", ("s.n = x * 1", "s.n = x * 3"), above=_OWN, arguments="x, s", calls=_ARGUMENT
    ),
    "an argument in place": _function(
        "s.add_(1)", ("s.add_(1)", "s.add_(2)"), above="s = torch.zeros(3)", arguments="x, s", calls=_ARGUMENT
    ),
    "an argument's write is lost": _function(
        "s.add_(1)", ("    s.add_(1)\n", ""), above="s = torch.zeros(3)", arguments="x, s", calls=_ARGUMENT
    ),
    "an argument's dictionary": _function(
        "s['k'] = x.shape[0]", ("= x.shape[0]\n", "= 7\n"), above="s = {'k': 0}", arguments="x, s", calls=_ARGUMENT
    ),
    "the first argument in place": _function("", ("x - 1, x)", "x - 1, x.add_(1))"), calls=_ALIAS),
    # --- modules ---
    "a buffer": _module("self.register_buffer('n', torch.zeros(1))", "self.n += 1", ("self.n += 1", "self.n += 2")),
    "a buffer is lost": _module(
        "self.register_buffer('n', torch.zeros(1))", "self.n += 1", ("        self.n += 1\n", "")
    ),
    "an attribute of a module": _module("self.n = 0.5", "self.n = 1.5", ("self.n = 1.5", "self.n = 2.5")),
    "a tensor of a module": _module(
        "self.last = None", "self.last = x * 2", ("self.last = x * 2", "self.last = x * 3")
    ),
    "a tensor of a module is lost": _module(
        "self.last = None", "self.last = x * 2", ("        self.last = x * 2\n", "")
    ),
    "a dictionary of a module": _module("self.kept = {'a': 0}", "self.kept['a'] = 1", ("['a'] = 1", "['a'] = 2")),
    "a private attribute": _module("self._n = 0", "self._n = 3", ("self._n = 3", "self._n = 4")),
    "running statistics": _module(
        "self.norm = torch.nn.BatchNorm1d(3)",
        "self.norm(x[None].repeat(2, 1))",
        ("        self.norm(x[None].repeat(2, 1))\n", ""),
    ),
    "a parameter in place": _module(
        "self.w = torch.nn.Parameter(torch.zeros(3))",
        "self.w.data.add_(1)",
        ("self.w.data.add_(1)", "self.w.data.add_(2)"),
    ),
    # --- gradients ---
    "no gradient of a global module": _function(
        "",
        ("net(x).sum()", "net(x).sum().detach() + 0 * net(x).sum()"),
        above=NET,
        result="net(x).sum()",
        calls=TRAINED,
    ),
    "a gradient of one parameter is lost": _module(
        "", "x = x + self.linear.bias", ("self.linear.bias", "self.linear.bias.detach()")
    ),
    "twice the gradient": _function(
        "",
        ("net(x).sum()", "2 * net(x).sum() - net(x).sum().detach()"),
        above=NET,
        result="net(x).sum()",
        calls=TRAINED,
    ),
    "a result without a gradient": _function(
        "",
        ("x * 2", "(x * 2).detach()"),
        calls="w = torch.ones(3, requires_grad=True)\nfor i in range(3):\n    f(w * i * 40)\n",
    ),
    "the gradient of an input": _function(
        "",
        ("x * 2", "x.detach() * 2 + 0 * x"),
        calls="w = torch.ones(3, requires_grad=True)\nfor i in range(3):\n    f(w)\n",
    ),
    # --- random numbers ---
    "more random numbers": _function("", ("torch.rand(3)", "torch.rand(6)[:3]"), result="x * torch.rand(3)"),
    "fewer random numbers": _function("", ("x + 0 * torch.rand(3)", "x + 0"), result="x + 0 * torch.rand(3)"),
    "other random numbers": _function("", ("torch.rand(3)", "torch.randn(3)"), result="x + torch.rand(3)"),
    "random numbers in another order": _function(
        "a = torch.rand(3)\nb = torch.randn(3)",
        ("    a = torch.rand(3)\n    b = torch.randn(3)\n", "    b = torch.randn(3)\n    a = torch.rand(3)\n"),
        result="x + a * b",
    ),
    "another seed": _function("torch.manual_seed(3)", ("manual_seed(3)", "manual_seed(4)"), result="x + torch.rand(3)"),
    # --- results ---
    "an input is returned": _case(
        f"{HEAD}\n\n@torch.compile\ndef f(a, x):\n{BREAK}    return a.clone(), x * 2\n\n\n"
        "a = torch.ones(3)\nfor i in range(4):\n    f(a, torch.full((3,), i * 40.0))\n",
        ("a.clone()", "a"),
    ),
    "a view is copied": _case(
        f"{HEAD}\n\n@torch.compile\ndef f(a, x):\n{BREAK}    return a.view(3), x * 2\n\n\n"
        "a = torch.ones(3)\nfor i in range(4):\n    f(a, torch.full((3,), i * 40.0))\n",
        ("a.view(3)", "a.clone()"),
    ),
    "another dtype": _function("", ("x * 2", "(x * 2).double()"), result="x * 2"),
    "another shape": _function("", ("x * 2", "(x * 2)[None]"), result="x * 2"),
    "another number": _function("", ("return x * 2", "return x * 2.001")),
    "another container": _function(
        "", ("return (x, x * 2)", "return [x + 0, x * 2]"), result="(x, x * 2)", calls=_ALIAS
    ),
    "another key": _function("", ("{'a': x * 2}", "{'b': x * 2}"), result="{'a': x * 2}", calls=_ALIAS),
    "one result less": _function("", ("return x * 2, x * 3", "return x * 2"), result="x * 2, x * 3", calls=_ALIAS),
    # --- output ---
    "a line is lost": _function("print('a')", ("    print('a')\n", "")),
    "a message is lost": _function("log.info('a')", ("    log.info('a')\n", "")),
    "another level": _function("log.info('a')", ("log.info('a')", "log.warning('a')")),
    "another message": _function("log.info('a')", ("log.info('a')", "log.info('b')")),
    # --- errors ---
    "an error is swallowed": _function(
        "if x.shape[0] == 5:\n    raise ValueError('five')",
        ("raise ValueError('five')", "pass"),
        calls=CALLS + "try:\n    f(torch.ones(5))\nexcept ValueError:\n    pass\n",
    ),
    "another error": _function(
        "if x.shape[0] == 5:\n    raise ValueError('five')",
        ("raise ValueError", "raise TypeError"),
        calls=CALLS + "try:\n    f(torch.ones(5))\nexcept Exception:\n    pass\n",
    ),
    "an error more": _function(
        "",
        ("    return", "    if x.shape[0] == 5:\n        raise ValueError('five')\n    return"),
        calls=CALLS + "try:\n    f(torch.ones(5))\nexcept ValueError:\n    pass\n",
    ),
    # --- modes and the process ---
    "the default dtype": _function("torch.set_default_dtype(torch.float32)", ("torch.float32", "torch.float64")),
    "the mode of gradients": _function(
        "torch.set_grad_enabled(True)", ("set_grad_enabled(True)", "set_grad_enabled(False)")
    ),
    "the mode of a module": _function(
        "net.train()", ("net.train()", "net.eval()"), above="net = torch.nn.Dropout(0.5)\n"
    ),
    "a variable of the environment": _function("os.environ['A'] = '1'", ("= '1'", "= '2'"), above="import os"),
    # --- training steps ---
    "a step is lost": _function(
        "loss = net(x).pow(2).mean()\nloss.backward()\nopt.step()\nopt.zero_grad()",
        ("    opt.step()\n", ""),
        above=_OPTIMIZER,
        result="loss.detach()",
    ),
    "the gradients are not cleared": _function(
        "loss = net(x).pow(2).mean()\nloss.backward()\nopt.step()\nopt.zero_grad()",
        ("    opt.zero_grad()\n", ""),
        above=_OPTIMIZER,
        result="loss.detach()",
    ),
    "two steps": _function(
        "loss = net(x).pow(2).mean()\nloss.backward()\nopt.step()\nopt.zero_grad()",
        ("    opt.step()\n", "    opt.step()\n    opt.step()\n"),
        above=_OPTIMIZER,
        result="loss.detach()",
    ),
    "a step while compiling is lost": _function(
        "loss = net(x).pow(2).mean()\nloss.backward()\nopt.step()\nopt.zero_grad()",
        ("    opt.step()\n", "    if not torch.compiler.is_compiling():\n        opt.step()\n"),
        above=_OPTIMIZER,
        result="loss.detach()",
    ),
}
