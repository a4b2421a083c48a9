"""LED: whether there is global attention is asked of a tensor.  Needs transformers."""

import torch
from transformers import LEDConfig, LEDModel

torch.manual_seed(0)
target = LEDModel(
    LEDConfig(
        vocab_size=100,
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        attention_window=8,
        max_encoder_position_embeddings=64,
        max_decoder_position_embeddings=64,
        use_cache=False,
    )
).eval()


def make(size, dtype):
    return (torch.randint(5, 90, (2, 16)),)


if __name__ == "__main__":
    compiled = torch.compile(target)
    compiled(*make(8, torch.float32))
