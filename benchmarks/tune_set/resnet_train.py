"""A ResNet trained with momentum on small images.  Needs timm."""

import sys
import time

import timm
import torch

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 30
torch.manual_seed(0)
model = timm.create_model("resnet14t", pretrained=False, num_classes=10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
criterion = torch.nn.CrossEntropyLoss()
model = torch.compile(model)

times = []
for step in range(steps):
    images, labels = torch.randn(4, 3, 64, 64), torch.randint(0, 10, (4,))
    start = time.perf_counter()
    optimizer.zero_grad()
    loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()
    times.append(time.perf_counter() - start)
print(f"loss {loss.item():.4f}, {1000 * sorted(times)[len(times) // 2]:.3f} ms a step")
