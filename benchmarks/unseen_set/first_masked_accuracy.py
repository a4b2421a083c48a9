# source: https://github.com/sgl-project/SpecForge/pull/222
import torch


def masked_accuracy(logits, target, mask):
    hits = (logits.argmax(-1) == target) * mask
    return hits.sum().item() / (mask.sum().item() + 1e-6)


@torch.compile
def draft_step(hidden, weight, target, mask):
    logits = hidden @ weight
    loss = torch.nn.functional.cross_entropy(logits, target, reduction="none")
    loss = (loss * mask).sum() / mask.sum()
    accuracy = masked_accuracy(logits, target, mask)
    return loss, accuracy


torch.manual_seed(0)
weight = torch.randn(8, 5, requires_grad=True)
for _ in range(3):
    hidden, target = torch.randn(10, 8), torch.randint(0, 5, (10,))
    mask = (torch.rand(10) > 0.3).float()
    loss, accuracy = draft_step(hidden, weight, target, mask)
    loss.backward()
    print(f"{loss.item():.4f} {accuracy:.3f}")
