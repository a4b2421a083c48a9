"""BART in training: whole layers are dropped by a random number, a branch in the library.  Needs transformers."""

import torch
from transformers import BartConfig, BartModel

torch.manual_seed(0)
target = BartModel(
    BartConfig(
        vocab_size=100,
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_position_embeddings=64,
        encoder_layerdrop=0.2,
        decoder_layerdrop=0.2,
        dropout=0.0,
        use_cache=False,
    )
).train()


def make(size, dtype):
    return (torch.randint(5, 90, (2, size)),)


if __name__ == "__main__":
    compiled = torch.compile(target)
    compiled(*make(8, torch.float32))
