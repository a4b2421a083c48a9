"""Wav2Vec2 in training: masks over time are drawn with NumPy, and layers are dropped.  Needs transformers."""

import torch
from transformers import Wav2Vec2Config, Wav2Vec2Model

torch.manual_seed(0)
target = Wav2Vec2Model(
    Wav2Vec2Config(
        vocab_size=32,
        conv_dim=(16, 16),
        conv_stride=(5, 2),
        conv_kernel=(10, 3),
        num_feat_extract_layers=2,
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4,
        mask_time_length=2,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=64,
    )
).train()


def make(size, dtype):
    return (torch.randn(2, 2000, dtype=dtype),)


if __name__ == "__main__":
    compiled = torch.compile(target)
    compiled(*make(8, torch.float32))
