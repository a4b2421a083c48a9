"""A text of a configuration is parsed."""

import json
import torch

TEXT = '{"scale": 2.0}'


def target(x):
    return x * json.loads(TEXT)["scale"]


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
