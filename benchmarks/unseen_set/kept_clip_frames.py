# source: https://github.com/pytorch/pytorch/issues/115626
import torch
from torch import nn


class Frames(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 4)

    def forward(self, clip):
        state = torch.zeros(clip.shape[0], 4)
        for frame in clip.unbind(1):
            state = self.cell(frame, state)
        return state


torch.manual_seed(0)
frames = torch.compile(Frames())
for length in (3, 5, 4, 6):
    print(f"{frames(torch.randn(2, length, 3)).sum().item():.4f}")
