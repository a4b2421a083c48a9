# source: https://github.com/pytorch/pytorch/issues/120934
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(5, 1)
momentum = [torch.zeros_like(p) for p in model.parameters()]


@torch.compile
def update(parameters, gradients, momentum, rate):
    for p, g, m in zip(parameters, gradients, momentum, strict=True):
        m.mul_(0.9).add_(g)
        p.sub_(m * rate)


for epoch in range(5):
    loss = (model(torch.randn(8, 5)) - 1).square().mean()
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    with torch.no_grad():
        update(list(model.parameters()), list(gradients), momentum, 0.1 / (1 + epoch))
    print(epoch, f"{loss.item():.4f}")
