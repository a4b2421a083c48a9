"""Greedy decoding with GPT-2 in a loop of the user's own: the input grows at each step.  Needs transformers."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
model = GPT2LMHeadModel(
    GPT2Config(
        vocab_size=100,
        n_embd=32,
        n_layer=1,
        n_head=4,
        n_positions=64,
        use_cache=False,
        eos_token_id=2,
    )
).eval()


@torch.compile
def step(ids):
    last = model(input_ids=ids).logits[:, -1]
    token = last.argmax(-1)
    if (token == 2).all():
        return ids
    return torch.cat([ids, token[:, None]], 1)


def make(size, dtype):
    return (torch.randint(5, 90, (2, size)),)


target = step


if __name__ == "__main__":
    (ids,) = make(8, torch.float32)
    with torch.no_grad():
        for _ in range(3):
            ids = step(ids)
