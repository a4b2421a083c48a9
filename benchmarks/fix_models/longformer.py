"""Longformer: whether there is global attention is asked of a tensor.  Needs transformers."""

import torch
from transformers import LongformerConfig, LongformerModel

torch.manual_seed(0)
target = LongformerModel(
    LongformerConfig(
        vocab_size=100,
        attention_window=8,
        max_position_embeddings=64,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=64,
    )
).eval()


def make(size, dtype):
    ids = torch.randint(5, 90, (2, 16))
    return ids, torch.ones_like(ids)


if __name__ == "__main__":
    compiled = torch.compile(target)
    compiled(*make(8, torch.float32))
