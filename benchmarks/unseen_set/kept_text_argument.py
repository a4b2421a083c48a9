# source: https://github.com/pytorch/pytorch/issues/100455
import torch
from torch import nn

torch.manual_seed(0)
table = nn.Embedding(26, 4)
head = nn.Linear(4, 2)


@torch.compile
def predict(text):
    ids = torch.tensor([ord(letter) - ord("a") for letter in text])
    return head(table(ids).mean(0)).softmax(-1)


with torch.no_grad():
    for text in ("frank", "sinatra", "saint", "genis"):
        print(f"{predict(text)[0].item():.4f}")
