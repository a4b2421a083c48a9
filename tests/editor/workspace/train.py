import torch


def loss_of(x):
    y = torch.relu(x) * 2
    if y.sum() > 0:  # line with the finding of the fake server
        y = y + 1
    return y.sum()


compiled = torch.compile(loss_of)
print(compiled(torch.randn(8)))
