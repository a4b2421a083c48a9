"""FlauBERT: the lengths of the sentences are checked with an assertion on values.  Needs transformers."""

import torch
from transformers import FlaubertConfig, FlaubertModel

torch.manual_seed(0)
target = FlaubertModel(FlaubertConfig(vocab_size=100, emb_dim=32, n_layers=1, n_heads=4)).eval()


def make(size, dtype):
    return (torch.randint(5, 90, (2, size)),)


if __name__ == "__main__":
    compiled = torch.compile(target)
    compiled(*make(8, torch.float32))
