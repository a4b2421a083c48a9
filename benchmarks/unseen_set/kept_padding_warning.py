# source: https://github.com/tenstorrent/tt-torch/issues/852
import logging

import torch

logging.basicConfig(format="%(levelname)s %(message)s")
logger = logging.getLogger("generation")


class Prepared:
    def __init__(self, pad=None, eos=2):
        self.pad, self.eos = pad, eos

    def tokens(self, ids):
        pad = self.pad
        if pad is None:
            pad = self.eos
            logger.warning(f"Setting pad to {pad} for open-end generation.")
        return (ids == pad).cumsum(-1)


torch.manual_seed(0)
prepared = Prepared()
run = torch.compile(prepared.tokens)
for _ in range(3):
    print(run(torch.randint(0, 4, (2, 5))).tolist())
