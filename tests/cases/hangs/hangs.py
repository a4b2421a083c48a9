"""A job of which one rank does not come to a collective: `python -m torch.distributed.run hangs.py CASE [BACKEND]`."""

import os
import sys
import time

import torch
import torch.distributed as dist

case, backend = sys.argv[1], (sys.argv[2:] or ["gloo"])[0]
dist.init_process_group(backend)
rank = dist.get_rank()
device = f"cuda:{rank}" if backend == "nccl" else "cpu"
if backend == "nccl":
    torch.cuda.set_device(rank)


def slow(graph, inputs):
    time.sleep(60)  # slow
    return graph


@torch.compile(backend=slow)
def step(x):  # step
    return x.sin() + 1


def spin():
    while True: pass  # spin


x = torch.ones(4, device=device)
for _ in range(3):
    dist.all_reduce(x)
if case == "dead" and rank == 0:
    time.sleep(60)  # asleep
if rank == 1:
    if case == "loop":
        spin()
    elif case == "compile":
        step(x)
    elif case == "mismatch":
        dist.broadcast(x, 0)  # broadcast
    elif case == "dead":
        os._exit(7)
dist.all_reduce(x)  # all
print(x.tolist())  # numbers
