# source: https://github.com/pytorch/pytorch/issues/107076
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8)


@torch.compile
def update():
    optimizer.step()


for step in range(5):
    loss = model(torch.randn(4, 6)).square().mean()
    loss.backward()
    update()
    schedule.step()
    optimizer.zero_grad()
    print(step, f"{loss.item():.4f} {optimizer.param_groups[0]['lr']:.5f}")
