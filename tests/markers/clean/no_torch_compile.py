"""A script that never compiles anything."""
import torch

x = torch.arange(6.0).reshape(2, 3)
for row in x:
    if row.sum() > 3:
        print(row.tolist())
