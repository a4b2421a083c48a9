"""The loss of the boxes that have an object, and none where no box has one."""

import torch
import torch.nn.functional as F

def target(deltas, wanted, labels):
    positive = torch.where(labels > 0)[0]
    if positive.numel() > 0:
        loss = F.smooth_l1_loss(deltas[positive], wanted[positive], reduction="sum") / positive.numel()
    else:
        loss = deltas.sum() * 0
    return loss


def make(size=8, dtype=torch.float32):
    deltas = torch.randn(size, 4, dtype=dtype, requires_grad=True)
    return (deltas, torch.randn(size, 4, dtype=dtype), torch.arange(size) % 3)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
