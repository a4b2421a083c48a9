"""Reformer: `.item()` in the position encodings, a data-dependent assertion in the hashing.  Needs transformers."""

import torch
from transformers import ReformerConfig, ReformerModel

torch.manual_seed(0)
target = ReformerModel(
    ReformerConfig(
        vocab_size=100,
        attn_layers=["lsh", "local"],
        hidden_size=32,
        num_attention_heads=2,
        attention_head_size=16,
        axial_pos_shape=(4, 8),
        axial_pos_embds_dim=(16, 16),
        feed_forward_size=64,
        num_buckets=4,
        lsh_attn_chunk_length=8,
        local_attn_chunk_length=8,
        hash_seed=7,
    )
).eval()


def make(size, dtype):
    return (torch.randint(5, 90, (1, 32)),)


if __name__ == "__main__":
    compiled = torch.compile(target)
    compiled(*make(8, torch.float32))
