"""What `irscope watch` adds to a training step, by turns in one process.

    .venv/bin/python benchmarks/watch_cost.py [--rounds 5] [--steps 4] [--width 256] [--cuda]

A transformer of four layers is trained under `irscope watch`.  In each round some steps are watched and as many are not
(the run is told to look away, and then a call of a graph costs one comparison more than without irscope).  Printed are
the medians of all steps in seconds of the thread's processor time and of the clock, and their ratios.  The goal is at
most 1.03 of the processor's time on a CPU, and 1.01 of the clock on a GPU.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPT = """
import inspect, statistics, sys, time
import torch

rounds, steps, width, device = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
compiled = torch.compile(model)


def step():
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    x = torch.randn(8, 128, width, device=device)
    wait()
    processor, clock = time.thread_time(), time.perf_counter()
    loss = compiled(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    wait()
    return time.thread_time() - processor, time.perf_counter() - clock


for _ in range(3):
    step()
[hook] = sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks.values()
watcher = inspect.getclosurevars(hook).nonlocals["events"]
assert not watcher._has_ended
times = {True: [], False: []}
for number in range(rounds):
    for is_watched in (True, False) if number % 2 else (False, True):
        watcher._has_ended = not is_watched
        times[is_watched] += [step() for _ in range(steps)]
watcher._has_ended = True
for name, which in (("processor", 0), ("clock", 1)):
    on, off = (statistics.median(each[which] for each in times[is_watched]) for is_watched in (True, False))
    print(f"{name}: {on:.4f} s watched, {off:.4f} s not, ratio {on / off:.4f}")
"""


def main() -> None:
    """Runs the training, which prints its times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("rounds", 5), ("steps", 4), ("width", 256)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--cuda", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "train.py")
        script.write_text(SCRIPT)
        arguments = [options.rounds, options.steps, options.width, "cuda" if options.cuda else "cpu"]
        command = [
            sys.executable,
            "-m",
            "irscope",
            "watch",
            "--store",
            f"{folder}/runs.db",
            str(script),
            "--",
            *map(str, arguments),
        ]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
