"""Twelve small programs of different kinds. Their kernels on three devices are recorded beside (kernels.json.gz)."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
HALF = torch.bfloat16


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(1000, 64), nn.Linear(64, 1000)

    def forward(self, words, wanted):
        return F.cross_entropy(self.head(self.embedding(words)).view(-1, 1000), wanted.view(-1))


def pointwise(x, y):
    return torch.sin(x) * y + x.abs().sqrt()


def softmax(x):
    return torch.softmax(x * 2, -1)


def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(2, 128, -1) * 2


def norm_and_rotation(x, weight, cosine, sine):
    x = x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6).to(x.dtype) * weight
    a, b = x.chunk(2, -1)
    return torch.cat([a * cosine - b * sine, b * cosine + a * sine], -1)


def scan_and_sort(x):
    return x.cumsum(-1).sort(-1)[0], x.argmax(-1)


def standardized(x):
    return (x - x.mean((0, 2, 3), keepdim=True)) / x.std((0, 2, 3), keepdim=True)


def perceptron():
    return nn.Sequential(nn.LayerNorm(128), nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 128))


def convolution():
    return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2))


def run(program, *inputs, train=False):
    with torch.set_grad_enabled(train):
        result = torch.compile(program)(*inputs)
        if train:
            result.sum().backward()


run(pointwise, torch.ones(1000, 1000), torch.ones(1000, 1))
run(softmax, torch.ones(512, 2000))
run(perceptron(), torch.ones(64, 128))
run(perceptron(), torch.ones(64, 128), train=True)
run(convolution().eval(), torch.ones(4, 3, 32, 32))
run(convolution(), torch.ones(4, 3, 32, 32), train=True)
run(attention, *(torch.ones(2, 8, 128, 64, dtype=HALF) for _ in range(3)))
run(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), torch.ones(4, 32, 64), train=True)
run(Classifier(), torch.zeros(4, 32, dtype=torch.long), torch.zeros(4, 32, dtype=torch.long), train=True)
run(norm_and_rotation, torch.ones(4, 128, 256, dtype=HALF), torch.ones(256, dtype=HALF), *(torch.ones(128, 128, dtype=HALF) for _ in range(2)))  # fmt: skip
run(scan_and_sort, torch.ones(64, 300))
run(standardized, torch.ones(8, 16, 64, 64))
