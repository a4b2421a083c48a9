"""GPT-2 with labels: the model logs a warning on the way to its loss.  Needs transformers."""

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
    )
).eval()


def loss(ids):
    return model(input_ids=ids, labels=ids).loss


def make(size, dtype):
    return (torch.randint(5, 90, (2, size)),)


target = loss
if __name__ == "__main__":
    compiled = torch.compile(loss)
    compiled(*make(8, torch.float32))
