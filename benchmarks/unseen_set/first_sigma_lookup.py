# source: https://github.com/huggingface/diffusers/pull/11696
import torch


class Scheduler:
    def __init__(self, steps):
        self.timesteps = torch.linspace(999, 0, steps).round()
        self.sigmas = torch.linspace(1.0, 0.0, steps + 1)

    def index_of(self, timestep):
        places = (self.timesteps == timestep).nonzero()
        return places[0].item()

    def step(self, noise, timestep, sample):
        index = self.index_of(timestep)
        return sample + (self.sigmas[index + 1] - self.sigmas[index]) * noise


torch.manual_seed(0)
scheduler = Scheduler(4)
step = torch.compile(scheduler.step)
sample = torch.randn(2, 3)
for timestep in scheduler.timesteps:
    sample = step(torch.randn(2, 3), timestep, sample)
    print(f"{sample.sum().item():.4f}")
