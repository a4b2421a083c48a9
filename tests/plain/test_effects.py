"""What code does beside giving a value, by its syntax: only output may be left out, and only what is known to do nothing."""

from __future__ import annotations

import ast

import pytest
from irscope.usercode.effects import can_be_left_out, effects_of

HEAD = """\
import json, math
import logging, sys, warnings
import absl.logging
import requests
import torch
import torch.nn.functional as F
from rich.console import Console
from loguru import logger as loud
from mine import say
from tqdm.auto import tqdm
from transformers.utils import logging as their_logging

logger = logging.getLogger(__name__)
theirs = their_logging.get_logger(__name__)
console, recorder = Console(), 0
bar = tqdm(range(9))
counted = tqdm(range(9))
shown = Console()
kept = Console(record=True)
names = ["a"]

class Net(torch.nn.Module):
    def __init__(self, tracker):
        self.logger = logging.getLogger("net")
        self.tracker = tracker

    def strip(self):
        self.calls = 1

    def tell(self, x):
        print(x)

def show(x, name="x"):
    \"\"\"Prints only.\"\"\"
    text = f"{name}: {x.mean().item():.3f}"
    for one in names:
        if len(one) > 3:
            print(one, text)
    return text

def show_and_count(x):
    global calls
    calls = 1
    print(x)

def show_and_keep(x):
    print(x)
    seen.append(x)

def f(self, x, it, d, opt, log, own: logging.Logger):
    if counted.n > 3:
        return
    STATEMENT
"""


def left_out(statement: str, head: str = HEAD) -> bool:
    text = head.replace("STATEMENT", statement)
    return can_be_left_out(text, head[: head.index("STATEMENT")].count("\n") + 1)


@pytest.mark.parametrize(
    "statement",
    [
        'print("mean", x.mean().item())', 'print(f"{x.shape} {x.norm():.3f}", len(names), sep="", flush=True)',
        "print(x, file=sys.stderr)", "logging.info('%s', x.shape)", "logger.warning('odd')",
        "logging.getLogger('m').error('odd')", "self.logger.debug(x.sum() / 2)", "own.info(x)", "theirs.warning_once('a')",
        "absl.logging.info(x)", "loud.info(x)", "warnings.warn(str(x.max()))", "sys.stdout.write('a')", "sys.stdout.flush()",
        "tqdm.write('a')", "bar.set_description(f'{x.mean():.2f}')", "bar.set_postfix(loss=x.item())", "bar.update(1)",
        "shown.print(x)", "show(x, 'loss')", "print(torch.isnan(x).any(), max(x.shape), [len(n) for n in names])", "print(json.dumps(names))",
        "if x.isnan().any() and len(names) > 3: warnings.warn('odd')", "if x.any(): pass",
        "with warnings.catch_warnings(): warnings.warn('odd')", "print(sum(p.norm() for p in self.parameters()))",
        "print(F.relu(x).mean(), torch.linalg.norm(x), x.float().to('cpu').tolist())",
    ],
)  # fmt: skip
def test_output(statement: str) -> None:
    assert left_out(statement)


@pytest.mark.parametrize(
    "statement",
    [
        # other calls, known and unknown
        "opt.step()", "self.schedule.step()", "self.buffer.append(x)", "self.calls += 1", "self.log('loss', x)", "helper(x)",
        "ema.update(self)", "metric.update(x)", "queue.put(x)", "handle.write('a')", "requests.post('url', x)", "log.info(x)",
        "say(x)", "self.tracker.log(x)", "d['seen'] = x", "del d['seen']", "next(it)", "breakpoint()", "time.sleep(1)",
        "writer.add_scalar('a', x)", "wandb.log({'a': x})", "torch.save(x, 'a')", "x.add_(1)", "x.mean()", "y = print(x)",
        "show_and_count(x)", "show_and_keep(x)", "counted.update(1)", "kept.print(x)", "console.print(x)",
        # arguments with effects
        "print(json.load(handle))", "logger.info(store.add('beats', 1))", "print(path.replace('b'))", "print(math.fsum(it))", "print(opt.step())", "print(next(it))", "logger.info(x.add_(1))", "print(d.pop('a'))", "print((y := x))",
        "print(f'{opt.step()}')", "print(helper(x))", "print(*it)", "print(list(it))", "print(max(it))", "print(x in it)",
        "print([y for y in it])", "print(', '.join(it))", "print(F.relu(x, inplace=True))", "print(torch.add(x, x, out=x))",
        "print(self.metric.compute())", "print(torch.rand(3))", "print(self.float())", "print(self.norm(x), self.linear(x))", "print(x.linear(3))", "print(self.half())", "print(await it)",
        "print((yield x))", "print(sorted(names, key=helper))", "print(show_and_keep(x))", "print(**d)",
        "self.tell(x)", "print(x.strip())", "keeper.count()", "print(keeper.count())", "self.trackers[next(it)].info(x)", "logging.getLogger(next(it)).info(x)",
        # output that is not for the screen, or that does more
        "print(x, file=log)", "print(x, file=open('a'))", "logging.basicConfig()", "logger.addHandler(log)",
        "warnings.simplefilter('error')", "warnings.catch_warnings(record=True)",
        # conditions and blocks
        "if opt.step(): print(x)", "if x.any(): opt.step()", "if x.any(): print(x)\n    else: opt.step()",
        "with open('a') as file: print(x)", "with self.lock: print(x)", "for y in it: print(y)", "return print(x)",
    ],
)  # fmt: skip
def test_what_is_not_only_output(statement: str) -> None:
    assert not left_out(statement)


@pytest.mark.parametrize(
    ("bound", "statement"),
    [
        ("print = log", "print(x)"), ("def print(*x): seen.append(x)", "print(x)"), ("from mine import print", "print(x)"),
        ("from mine import *", "print(x)"), ("builtins.print = log", "print(x)"),
        ("names = (n for n in 'ab')", "print(list(names))"), ("names = zip('ab', 'cd')", "print(dict(names))"),
        ("logger = Mine()", "logger.info(x)"), ("logger.info = seen.append", "logger.info(x)"), ("len = log", "print(len(x))"),
        ("warnings.warn = log", "warnings.warn('a')"), ("for show in names: pass", "show(x)"), ("tqdm = Mine", "bar.update(1)"),
        ("def g(logger): pass", "logger.info(x)"), ("x.mean = opt.step", "print(x.mean())"), ("self.logger = log", "self.logger.info(x)"),
    ],
)  # fmt: skip
def test_a_name_that_may_be_something_else_is_not_known(bound: str, statement: str) -> None:
    assert left_out(statement)
    assert not left_out(statement, HEAD.replace("names = ", f"{bound}\nnames = "))


@pytest.mark.parametrize(
    ("classes", "statement"),
    [
        ("class Own(logging.Logger): pass\nlogging.setLoggerClass(Own)", "logger.info(x)"), ("logging.setLoggerClass(mine)", "logging.info(x)"),
        ("class Keep(logging.Handler): pass", "self.logger.debug(x)"),
        ("class A:\n    def __getitem__(self, i): return self.d.setdefault(i)", "print(x[0])"),
        ("class A:\n    def __str__(self): opt.step()", "print(x)"), ("class A:\n    def __format__(self, s): opt.step()", "print(f'{x}')"),
        ("class A:\n    def __repr__(self): return self.count()", "logger.info('%r', x)"),
        ("class A:\n    def __add__(self, y): opt.step()", "print(x + 1)"), ("class A:\n    def __bool__(self): opt.step()", "if x: print(1)"),
        ("class A:\n    @property\n    def total(self): opt.step()", "print(x.total)"),
        ("class A:\n    def __str__(self): return self.text\n    @property\n    def text(self): opt.step()", "print(x)"),
        ("sys.stdout = Mine()", "print(3)"), ("warnings.showwarning = keep", "warnings.warn('a')"),
    ],
)  # fmt: skip
def test_what_classes_of_the_file_do_when_they_are_shown(classes: str, statement: str) -> None:
    assert left_out(statement)
    assert not left_out(statement, HEAD.replace("names = ", f"{classes}\nnames = "))


@pytest.mark.parametrize(
    ("classes", "statement"),
    [
        ("class A:\n    def __getitem__(self, i): return self.x[i], self.y[i]", "print(x[0])"),
        ("class A:\n    def __getitem__(self, i): return opt.step()", "print(names[0], [1][0], x.tolist()[0])"),
        ("class A:\n    def __str__(self): return f'{self.a} {self.b:.3f}'", "print(x)"),
        ("class A:\n    def __str__(self): opt.step()", "print(x.mean().item(), 'a', x.shape)"),
        ("class A:\n    @property\n    def device(self): return next(self.parameters()).device", "print(x.device)"),
    ],
)  # fmt: skip
def test_what_classes_of_the_file_give(classes: str, statement: str) -> None:
    assert left_out(statement, HEAD.replace("names = ", f"{classes}\nnames = "))


def test_an_attribute_that_another_file_may_bind() -> None:
    own = "class Bar:\n    def start(self): self.out = tqdm([])\n"
    other = "class Net(Base):\n    def forward(self, x):\n        STATEMENT\n"
    assert not left_out("self.out.write('row')", f"from tqdm import tqdm\n{own}{other}")
    assert left_out("self.out.write('row')", f"from tqdm import tqdm\n{own}{other}".replace("Base", "Bar"))


@pytest.mark.parametrize(
    ("text", "pure"), [("x.item() + 1", True), ("f'{x!r:>9}'", True), ("d['a'].b", True), ("x.grad.zero_()", False)]
)
def test_what_only_gives_a_value(text: str, pure: bool) -> None:
    tree = ast.parse(text)
    assert effects_of(tree).is_pure(tree.body[0].value) is pure  # type: ignore[attr-defined]
