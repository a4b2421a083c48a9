# source: https://github.com/open-edge-platform/physical-ai-studio/pull/877
import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 12)
        self.head = nn.Linear(12, 2)

    def compute_loss(self, batch):
        action = self.head(torch.relu(self.body(batch["state"])))
        loss = nn.functional.l1_loss(action, batch["action"])
        return loss, {"l1_loss": loss.item()}

    def forward(self, batch):
        return self.compute_loss(batch)


torch.manual_seed(0)
policy = Policy()
model = torch.compile(policy)
optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
for step in range(3):
    loss, losses = model({"state": torch.randn(4, 6), "action": torch.randn(4, 2)})
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, f"{losses['l1_loss']:.4f}")
