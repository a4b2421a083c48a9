# lane: deep
"""A training step of a small model, forward and backward, with nothing to report."""
import torch

model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))


@torch.compile
def loss_of(x, target):
    return torch.nn.functional.mse_loss(model(x), target)


loss_of(torch.ones(3, 8), torch.ones(3, 4)).backward()
print(model[0].weight.grad.shape)
