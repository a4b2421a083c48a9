# source: https://github.com/huggingface/transformers/pull/37944
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def needs_mask(self, mask):
        return mask is not None and (mask == 0).any()

    def forward(self, x, mask):
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.transpose(1, 2)
        if self.needs_mask(mask):
            scores = scores.masked_fill(mask[:, None, :] == 0, -1e4)
        return torch.softmax(scores, -1) @ v


torch.manual_seed(0)
attention = torch.compile(Attention().eval())
with torch.no_grad():
    for last in (1, 0, 1, 0):
        mask = torch.tensor([[1, 1, 1, 1], [1, 1, 1, last]])
        print(f"{attention(torch.randn(2, 4, 8), mask).sum().item():.4f}")
