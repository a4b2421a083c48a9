import torch


def work(rank, requests, answers):
    from model import Model
    from pieces import piecewise

    torch.manual_seed(0)
    model = torch.compile(Model(), dynamic=False, backend=piecewise)
    while (sizes := requests.get()) is not None:
        for size in sizes:
            with torch.no_grad():
                answer = model(torch.ones(size, 16))  # step
        answers.put((rank, tuple(answer.shape)))
