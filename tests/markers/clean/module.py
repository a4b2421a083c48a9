"""A convolutional network in eval mode, called often with one shape."""
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Linear(4 * 4 * 4, 10)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


net = torch.compile(Net().eval())
with torch.inference_mode():
    for _ in range(3):
        print(net(torch.ones(2, 3, 8, 8)).shape)
