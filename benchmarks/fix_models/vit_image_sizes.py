"""A vision transformer on images of several sizes: position embeddings are interpolated.  Needs timm."""

import timm
import torch

torch.manual_seed(0)
target = timm.create_model(
    "vit_tiny_patch16_224", img_size=64, depth=1, embed_dim=32, num_heads=4, num_classes=10, dynamic_img_size=True
).eval()


def make(size, dtype):
    return (torch.randn(1, 3, 16 * size, 64, dtype=dtype),)


if __name__ == "__main__":
    compiled = torch.compile(target)
    for size in (4, 5, 6):
        compiled(*make(size, torch.float32))
