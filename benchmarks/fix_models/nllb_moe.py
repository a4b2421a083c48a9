"""NLLB with mixture-of-experts layers: tokens are sent to experts by values.  Needs transformers."""

import torch
from transformers import NllbMoeConfig, NllbMoeModel

torch.manual_seed(0)
target = NllbMoeModel(
    NllbMoeConfig(
        vocab_size=100,
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        num_experts=4,
        encoder_sparse_step=1,
        decoder_sparse_step=1,
        max_position_embeddings=64,
        use_cache=False,
    )
).eval()


def make(size, dtype):
    ids = torch.randint(5, 90, (2, size))
    return ids, torch.ones_like(ids), ids


if __name__ == "__main__":
    compiled = torch.compile(target)
    compiled(*make(8, torch.float32))
