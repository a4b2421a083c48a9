# source: https://github.com/huggingface/diffusers/issues/11360
import torch
from torch import nn


class Patches(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Conv2d(3, 8, 4, 4)
        self.scale = nn.Parameter(torch.ones(8))

    def forward(self, image):
        height, width = image.shape[2:]
        tokens = self.embed(image).flatten(2).transpose(1, 2) * self.scale
        rows = torch.arange(height // 4).repeat_interleave(width // 4)
        return tokens + rows[None, :, None] / height


torch.manual_seed(0)
patches = torch.compile(Patches())
with torch.no_grad():
    for size in ((16, 16), (24, 16), (32, 32), (8, 24)):
        print(tuple(patches(torch.randn(1, 3, *size)).shape))
