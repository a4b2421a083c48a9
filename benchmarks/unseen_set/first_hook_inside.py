# source: https://github.com/pytorch/pytorch/pull/185768
import torch
from torch import nn

sizes = []


class Probed(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 6)

    def forward(self, x):
        handle = self.inner.register_forward_hook(lambda module, given, result: sizes.append(tuple(result.shape)))
        y = self.inner(x).tanh()
        handle.remove()
        return y.sum(-1)


torch.manual_seed(0)
probed = torch.compile(Probed())
for _ in range(3):
    print(f"{probed(torch.randn(2, 4)).mean().item():.4f}")
print(sizes)
