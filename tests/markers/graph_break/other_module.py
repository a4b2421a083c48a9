"""Breaks in modules that the script imports, none in the script itself."""
import torch
from other_module_lib import Net
from other_module_lib.deep import tools

net = torch.compile(Net())
net(torch.ones(2, 4))


@torch.compile
def step(x):
    return tools.clip(x) + 1


step(torch.ones(4))
