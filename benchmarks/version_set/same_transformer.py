# change: 2.13 2.13 none
"""A decoder with a cache of keys and values that grows: two environments with the same version must show no difference."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm, self.norm_of_mlp = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))

    def forward(self, x, past=None):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1))
        if past is not None:
            k, v = torch.cat((past[0], k), 2), torch.cat((past[1], v), 2)
        attended = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm_of_mlp(x)), (k, v)


class Decoder(nn.Module):
    def __init__(self, words=64, width=32, heads=4, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.head = nn.Linear(width, words)

    def forward(self, tokens, past):
        x, kept = self.embedding(tokens), []
        for block, known in zip(self.blocks, past, strict=True):
            x, now = block(x, known)
            kept.append(now)
        return self.head(x[:, -1]), kept


model = Decoder().eval()
step = torch.compile(model)
tokens, past = torch.randint(0, 64, (2, 6)), [None, None]
with torch.no_grad():
    for _ in range(3):
        logits, past = step(tokens, past)
        tokens = torch.multinomial(logits.softmax(-1), 1)
