import torch


def work(rank, requests, answers):
    from model import Model

    torch.manual_seed(0)
    model = torch.compile(Model(), dynamic=False)
    while (sizes := requests.get()) is not None:
        for size in sizes:
            with torch.no_grad():
                answer = model(torch.ones(size, 16))  # step
        answers.put((rank, tuple(answer.shape)))
