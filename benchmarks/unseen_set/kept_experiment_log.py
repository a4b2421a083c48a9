# source: https://github.com/Lightning-AI/pytorch-lightning/issues/17214
import json

import torch
from torch import nn

lines = []


class Validated(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 3)

    def forward(self, x, y):
        logits = self.net(x)
        loss = nn.functional.cross_entropy(logits, y)
        accuracy = (logits.argmax(-1) == y).float().mean()
        lines.append(json.dumps({"loss": round(loss.item(), 4), "accuracy": round(accuracy.item(), 4)}))
        return loss


torch.manual_seed(0)
model = torch.compile(Validated())
for _ in range(3):
    model(torch.randn(6, 4), torch.randint(0, 3, (6,)))
print("\n".join(lines))
