"""How long the code for a GPU takes that is not here, against a machine that has it.

    python benchmarks/target_times.py --target h100 --out times.json [--rounds 5] [--only WORD]    on the machine with the GPU

For each model of `targets.py`, or with ``--small`` for each program of `tests/device_kernels`: the seconds that the GPU's own run needs from the call to generated code, without loading
that code, which compiles the kernels; and the seconds of retargeted code generation in ``irscope run --target`` on the
same machine with the GPU hidden, once without Dynamo's trace, which all targets of a run share, and once with it.  The
runs alternate; each has empty caches; ``--jobs`` cases run at a time.  Prints medians, their ratio and the load.
Goal: at most 0.5 of the GPU's own run.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from targets import REPOSITORY, cases, write_script
from targets_and_gpu import PROGRAMS
from targets_and_gpu import SCRIPT as SMALL

GOAL = 0.5
# The clock stops while generated code is loaded and executed.
TIMED = """\
import json, runpy, sys, time
import torch
import torch._inductor.codecache as codecache
import torch._inductor.compile_fx  # an import is not a part of a compile

load, told = codecache.PyCodeCache.load_by_key_path, {"seconds": 0.0, "since": 0.0}

def timed(*args, **kwargs):
    told["seconds"] += time.perf_counter() - told["since"]
    try:
        return load(*args, **kwargs)
    finally:
        told["since"] = time.perf_counter()

codecache.PyCodeCache.load_by_key_path = timed
compile, backward = torch.compile, torch.Tensor.backward

def from_here(function):
    def called(*args, **kwargs):
        told["since"] = time.perf_counter()
        return function(*args, **kwargs)
    return called

torch.compile = lambda function: from_here(compile(function))
torch.Tensor.backward = from_here(backward)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
print("TOLD", json.dumps(told["seconds"]))
"""


@dataclasses.dataclass(frozen=True)
class Case:
    """A script with its arguments and environment, for a device."""

    name: str
    script: Path
    work: Path

    def command_of(self, device: str) -> tuple[list[str], dict[str, str]]:
        """The script's arguments, and its environment with empty caches."""
        cache = self.work / "cache"
        shutil.rmtree(cache, ignore_errors=True)
        path = os.pathsep.join(filter(None, (str(REPOSITORY / "compiler"), os.environ.get("PYTHONPATH", ""))))
        environment = {
            **os.environ, "PYTHONPATH": path, "PROGRAMS_DEVICE": device,
            "TORCHINDUCTOR_CACHE_DIR": str(cache), "TRITON_CACHE_DIR": str(cache / "triton"),
        }  # fmt: skip
        return [self.name if self.script == SMALL else device], environment


def real(case: Case, device: str, seconds: float) -> float:
    """From the call to generated code, forward and backward, on the device.  Raises RuntimeError if the script fails."""
    (case.work / "timed.py").write_text(TIMED)
    arguments, environment = case.command_of(device)
    command = [sys.executable, str(case.work / "timed.py"), str(case.script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=environment, check=False)
    if (at := done.stdout.rfind("TOLD ")) < 0:
        raise RuntimeError(done.stderr[-400:])
    if not (found := float(json.loads(done.stdout[at + 5 :]))):
        raise RuntimeError("no code was generated")
    return found


def predicted(case: Case, target: str, seconds: float) -> tuple[float, float]:
    """Seconds of code generation for the target, and with Dynamo's trace.  Raises RuntimeError if it fails."""
    arguments, environment = case.command_of("cpu")
    command = [sys.executable, "-m", "irscope", "run", str(case.script), "--store", str(case.work / "times.db"), "--json",
               "--no-symbolic-trace", "--target", target, *(["--fake"] if case.script == SMALL else []), "--", *arguments]  # fmt: skip
    environment |= {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=environment, check=False)
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise RuntimeError(done.stderr[-400:]) from None
    if not report["predictions"] or any(each["outcome"] != "compiled" for each in report["predictions"]):
        raise RuntimeError(f"{report['capture_gaps']} {done.stderr[-400:]}")
    code = sum(each["seconds"] for each in report["predictions"])
    return code, code + sum(each["seconds"] for each in report["compiles"])


def one(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """The medians of one case."""
    work = options.work / name
    work.mkdir(parents=True, exist_ok=True)
    case = Case(name, SMALL if options.small else write_script(name, work), work.resolve())
    rows = [
        (
            real(case, options.device, options.seconds),
            *predicted(case, options.target, options.seconds),
        )
        for _ in range(options.rounds)
    ]
    own, code, whole = (statistics.median(column) for column in zip(*rows, strict=True))
    return {
        "case": name, "real": own, "code": code, "with_trace": whole, "ratio": code / own, "ratio_with_trace": whole / own,
        "rounds": rows, "load": os.getloadavg()[0],
    }  # fmt: skip


def main() -> int:
    """Measures all cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="h100")
    parser.add_argument("--device", default="cuda", help="of the real run; cpu:0: to try the script without a GPU")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path("out/target-times"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--small", action="store_true", help="the programs of tests/device_kernels")
    parser.add_argument("--jobs", type=int, default=1, help="cases at a time")
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=240, help="of one run of one case")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    found: list[dict[str, Any]] = []
    print(f"{'case':55}   real  target  ratio  with trace  ratio  load")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        names = [name for name in (PROGRAMS if options.small else cases()) if options.only in name]
        work = {pool.submit(one, name, options): name for name in names}
        for future in concurrent.futures.as_completed(work):
            try:
                row = future.result()
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                print(f"{work[future]:55} {error}", flush=True)
                continue
            found.append(row)
            print(f"{row['case']:55} {row['real']:6.2f} {row['code']:7.2f} {row['ratio']:6.2f} {row['with_trace']:11.2f} "
                  f"{row['ratio_with_trace']:6.2f} {row['load']:5.1f}", flush=True)  # fmt: skip
            options.out.write_text(json.dumps(found, indent=1))
    if found:
        median = statistics.median(row["ratio"] for row in found)
        print(f"{len(found)} cases: median ratio {median:.2f}, goal at most {GOAL}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
