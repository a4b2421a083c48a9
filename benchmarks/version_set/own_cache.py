# change: 2.11 2.13 ?
"""A function with a cache that is defined while tracing."""

import functools

import torch


@torch.compile(backend="eager")
def cached(x):
    @functools.lru_cache
    def successor(n):
        return n + 1

    return x + successor(2)


cached(torch.ones(4))
