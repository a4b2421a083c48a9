# source: https://github.com/meta-pytorch/torchrec/pull/4338
import torch
from torch import nn


class MeanError(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(()))
        self.updates = 0
        self.computed = None

    def update(self, predictions, labels):
        self.computed = None
        self.updates += 1
        self.total += (predictions - labels).abs().mean()

    def compute(self):
        return self.total / self.updates


torch.manual_seed(0)
metric = MeanError()
update = torch.compile(metric.update)
for _ in range(6):
    update(torch.randn(8), torch.randn(8))
print(metric.updates, f"{metric.compute().item():.4f}")
