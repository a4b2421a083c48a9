"""Breaks whose cause PyTorch sees in a library: they stand at the user's call, and user code below a library at itself."""
import functools
import json

import torch
from torch.utils.checkpoint import checkpoint


class Noisy(torch.nn.Module):
    def forward(self, x):
        print("noisy")
        #^^^^^^^^^^^^^ graph-break GB0059 ×2
        return x + 1


sequential = torch.nn.Sequential(torch.nn.Linear(4, 4), Noisy(), torch.nn.ReLU())


@torch.compile
def user_below_sequential(x):
    return sequential(x) * 2


def add(a, b):
    torch._dynamo.graph_break()
    #^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0025 ×2
    return a + b
    #      ^ recompilation recompile-aliasing


@torch.compile
def user_below_reduce(x):
    return functools.reduce(add, [x, x, x])


@torch.compile
def library_at_fault(x):
    note = json.dumps({"size": x.shape[0]})
    #      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0156
    return x + len(note)


def block(x):
    return x.sin() * x.max().item()
    #                ^^^^^^^^^^^^^^ graph-break GB0124


@torch.compile
def user_below_checkpoint(x):
    return checkpoint(block, x, use_reentrant=False)


def key_of(row):
    return row.sum().item()
    #      ^^^^^^^^^^^^^^^^ graph-break GB0124


@torch.compile
def user_below_sorted(x):
    return sorted(x, key=key_of)[0]
    #      ^^^^^^^^^^^^^^^^^^^^^ graph-break GB0059


@torch.compile
def optimizer_step(x):
    optimizer.zero_grad()
    #^^^^^^^^^^^^^^^^^^^^ graph-break GB0008
    loss = (weight * x).sum()
    loss.backward()
    #^^^^^^^^^^^^^^ graph-break GB0123
    optimizer.step()
    #^^^^^^^^^^^^^^^ graph-break GB0025 ×2
    return loss


weight = torch.ones(4, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
with torch.no_grad():
    for f in (user_below_sequential, user_below_reduce, library_at_fault, user_below_sorted):
        f(torch.ones(2, 4))
user_below_checkpoint(torch.ones(4, requires_grad=True))
optimizer_step(torch.ones(4))
