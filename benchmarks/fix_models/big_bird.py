"""BigBird with block-sparse attention: random blocks are drawn with NumPy.  Needs transformers."""

import torch
from transformers import BigBirdConfig, BigBirdModel

torch.manual_seed(0)
target = BigBirdModel(
    BigBirdConfig(
        vocab_size=100,
        block_size=4,
        num_random_blocks=1,
        max_position_embeddings=128,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=64,
    )
).eval()


def make(size, dtype):
    return (torch.randint(5, 90, (1, 64)),)


if __name__ == "__main__":
    compiled = torch.compile(target)
    compiled(*make(8, torch.float32))
