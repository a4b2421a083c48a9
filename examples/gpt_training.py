"""A small GPT, written for this repository, with one compiled training step.

Open it in the editor with irscope, or run `irscope run examples/gpt_training.py`.  It shows two things that happen to
every model sooner or later: a graph break in a branch that only logs, and a recompilation when the length of the
sequences changes.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    """Causal self-attention: (batch, length, width) → (batch, length, width)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(width // self.heads)
        future = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        weights = scores.masked_fill(future, float("-inf")).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, vocabulary: int = 64, width: int = 32, heads: int = 4, layers: int = 2, length: int = 64):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Trainer:
    def __init__(self, model: GPT) -> None:
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

    @torch.compile
    def loss(self, tokens: torch.Tensor) -> torch.Tensor:
        logits = self.model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        if loss > 5:  # only for the log, yet it cuts the graph: the branch needs the value of `loss`
            print("loss is high")
        return loss * 1.0

    def step(self, tokens: torch.Tensor) -> float:
        self.optimizer.zero_grad()
        loss = self.loss(tokens)
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main() -> None:
    torch.manual_seed(0)
    trainer = Trainer(GPT())
    # The third batch is longer: what was compiled for 17 tokens does not fit, so it is compiled again, for any length.
    for step, length in enumerate((17, 17, 25, 33, 17, 25)):
        tokens = (torch.arange(length).repeat(4, 1) + torch.randint(64, (4, 1))) % 64
        print(f"step {step}: length {length}, loss {trainer.step(tokens):.3f}")


if __name__ == "__main__":
    main()
