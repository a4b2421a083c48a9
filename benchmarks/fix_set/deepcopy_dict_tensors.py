"""A dict of tensors is copied, as caches are."""

import copy
import torch

def target(x):
    state = {"h": x * 2, "c": x + 1}
    saved = copy.deepcopy(state)
    state["h"] = state["h"] + 1
    return saved["h"] + state["h"] + saved["c"]


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
