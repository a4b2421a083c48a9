"""BART as a classifier: the ends of sentences are found by values, and selected by a mask.  Needs transformers."""

import torch
from transformers import BartConfig, BartForSequenceClassification

torch.manual_seed(0)
target = BartForSequenceClassification(
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
        eos_token_id=2,
        use_cache=False,
    )
).eval()


def make(size, dtype):
    ids = torch.randint(5, 90, (2, size))
    ids[:, -1] = 2
    return (ids,)


if __name__ == "__main__":
    compiled = torch.compile(target)
    compiled(*make(8, torch.float32))
