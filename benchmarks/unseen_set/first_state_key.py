# source: https://github.com/pytorch/pytorch/issues/175858
import torch
from torch import nn

torch.manual_seed(0)
value = nn.Linear(4, 1)


@torch.compile
def step(state):
    state["loss"] = value(state["obs"]).square().mean()
    return state


state = {"obs": torch.randn(3, 4)}
for _ in range(4):
    state = step(state)
    print(f"{state['loss'].item():.4f}")
    state["obs"] = state["obs"] * 0.5
