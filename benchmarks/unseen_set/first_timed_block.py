# source: https://github.com/pytorch/pytorch/issues/137068
import time

import torch
from torch import nn

seconds = {}


class Timed(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def forward(self, x):
        begin = time.time()
        y = torch.softmax(self.inner(x), -1)
        seconds["inner"] = time.time() - begin
        return y * 2


torch.manual_seed(0)
timed = torch.compile(Timed())
for _ in range(3):
    print(f"{timed(torch.randn(2, 8)).max().item():.4f}")
print(sorted(seconds))
