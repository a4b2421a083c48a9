# source: https://github.com/huggingface/transformers/pull/30793
import torch
from transformers import MixtralConfig, MixtralForCausalLM

torch.manual_seed(0)
config = MixtralConfig(
    vocab_size=64,
    hidden_size=16,
    intermediate_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    num_key_value_heads=2,
    num_local_experts=3,
    num_experts_per_tok=2,
    max_position_embeddings=32,
)
model = torch.compile(MixtralForCausalLM(config).eval())
with torch.no_grad():
    for length in (6, 8):
        logits = model(torch.randint(0, 64, (1, length)), use_cache=False).logits
        print(tuple(logits.shape), f"{logits.mean().item():.4f}")
