"""Twelve small programs of different kinds. Their kernels on three devices are recorded beside (kernels.json.gz).

The arguments name programs; without any all run. ``PROGRAMS_DEVICE`` names the device, the CPU if it is not set.
"""

import os
import sys

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
HALF = torch.bfloat16
DEVICE = os.environ.get("PROGRAMS_DEVICE", "cpu")


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
    torch._dynamo.reset()  # else sizes of programs that share a function are dynamic
    if isinstance(program, nn.Module):
        program = program.to(DEVICE)
    inputs = [each.to(DEVICE) for each in inputs]
    with torch.set_grad_enabled(train):
        result = torch.compile(program)(*inputs)
        if train:
            result.sum().backward()


PROGRAMS = {
    "pointwise": lambda: run(pointwise, torch.ones(1000, 1000), torch.ones(1000, 1)),
    "softmax": lambda: run(softmax, torch.ones(512, 2000)),
    "perceptron": lambda: run(perceptron(), torch.ones(64, 128)),
    "perceptron_trained": lambda: run(perceptron(), torch.ones(64, 128), train=True),
    "convolution": lambda: run(convolution().eval(), torch.ones(4, 3, 32, 32)),
    "convolution_trained": lambda: run(convolution(), torch.ones(4, 3, 32, 32), train=True),
    "attention": lambda: run(attention, *(torch.ones(2, 8, 128, 64, dtype=HALF) for _ in range(3))),
    "encoder_trained": lambda: run(
        nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), torch.ones(4, 32, 64), train=True
    ),
    "classifier_trained": lambda: run(
        Classifier(), torch.zeros(4, 32, dtype=torch.long), torch.zeros(4, 32, dtype=torch.long), train=True
    ),
    "norm_and_rotation": lambda: run(
        norm_and_rotation,
        torch.ones(4, 128, 256, dtype=HALF),
        torch.ones(256, dtype=HALF),
        *(torch.ones(128, 128, dtype=HALF) for _ in range(2)),
    ),
    "scan_and_sort": lambda: run(scan_and_sort, torch.ones(64, 300)),
    "standardized": lambda: run(standardized, torch.ones(8, 16, 64, 64)),
}

for name in sys.argv[1:] or PROGRAMS:
    PROGRAMS[name]()
    print(name)
