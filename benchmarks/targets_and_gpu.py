"""Targets on a machine that has a GPU: the same kernels as where there is none, and those that the GPU itself gets.

    python benchmarks/targets_and_gpu.py --out kernels.json                           on a machine without a GPU
    python benchmarks/targets_and_gpu.py --out there.json --against kernels.json --real    on one with a GPU

The programs are those of `tests/device_kernels`.  Each is predicted twice: with the GPU of the machine visible to the
command, and with it hidden.  ``--against`` compares with what another machine has predicted, by hash; the versions of torch
and triton must be the same.  ``--real`` runs the programs on the GPU, too, and compares its kernels and their PTX with those
predicted for the targets that ``--same-as`` names: with ``h100,h200`` it shows whether one card's predictions are right for
the other.  Exits with 1 if a kernel differs.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "compiler"))

from irscope.comparing.certificates import comparable_code, comparable_source  # noqa: E402
from irscope.store.store import Store  # noqa: E402

SCRIPT = REPOSITORY / "tests" / "device_kernels" / "programs.py"
PROGRAMS = (
    "pointwise", "softmax", "perceptron", "perceptron_trained", "convolution", "convolution_trained", "attention",
    "encoder_trained", "classifier_trained", "norm_and_rotation", "scan_and_sort", "standardized",
)  # fmt: skip
HIDDEN = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}
Kernels = dict[str, dict[str, str]]
"""By program and target: by the kernel's name the hash of its source, and of its code (``name/code``)."""


def run(program: str, kind: str, options: argparse.Namespace) -> Kernels:
    """Runs a program.  Raises RuntimeError.

    Args:
        kind: ``real``: on the GPU; ``visible``: predicted, with the GPU there; ``hidden``: predicted, with it hidden.
    """
    store = options.work / f"{kind}-{program}.db"
    store.unlink(missing_ok=True)
    command = [
        sys.executable,
        "-m",
        "irscope",
        "run",
        str(SCRIPT),
        "--store",
        str(store),
        "--json",
        "--no-symbolic-trace",
    ]
    environment = {
        **os.environ, "PYTHONPATH": str(REPOSITORY / "compiler") + os.pathsep + os.environ.get("PYTHONPATH", ""),
        "TORCHINDUCTOR_CACHE_DIR": str(options.work / f"cache-{kind}-{program}"), "TORCHINDUCTOR_COMPILE_THREADS": "2",
    }  # fmt: skip
    if kind == "real":
        environment["PROGRAMS_DEVICE"] = "cuda"
    else:
        command += ["--target", options.targets, "--fake"]
        environment |= HIDDEN if kind == "hidden" else {}
    started = time.monotonic()
    done = subprocess.run(
        [*command, "--", program], capture_output=True, text=True, timeout=options.seconds, env=environment, check=False
    )
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise RuntimeError(f"{kind} {program}: {done.stderr[-500:]}") from None
    if report["outcome"]["kind"] != "completed":
        raise RuntimeError(f"{kind} {program}: {json.dumps(report['outcome'])[:300]} {done.stderr[-500:]}")
    gaps = [f"{gap['what']}: {gap['why']}"[:200] for gap in report["capture_gaps"]]
    print(f"  {kind:8}{program:22}{time.monotonic() - started:6.1f} s  {gaps or ''}", flush=True)
    return read(store, report["run"], program)


def read(store: Path, run_id: str, program: str) -> Kernels:
    """The hashes of a run's Triton kernels."""
    found: Kernels = {}
    with Store(str(store)) as opened:
        whole = opened.report(run_id)
        for kernel in (*whole.kernels, *whole.predicted_kernels):
            if kernel.language != "triton" or not kernel.is_generated:
                continue
            name = f"{'backward ' if 'backward' in kernel.stage else ''}{kernel.name}"
            row = found.setdefault(f"{program} {kernel.target or 'real'}", {})
            row[name] = _hash(comparable_source(opened.stage_text(run_id, kernel.stage)))
            for code in ("ptx", "amdgcn"):
                try:
                    config = opened.stage_data(run_id, f"{kernel.stage}/binary")["config"]
                    text = comparable_code(opened.stage_text(run_id, f"{kernel.stage}/{code}"))
                except (LookupError, TypeError):
                    continue
                row[f"{name}/{config}"] = _hash(text)
    return found


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def compare(title: str, first: Kernels, second: Kernels, only_shared_code: bool = False) -> bool:
    """Prints how many kernels are the same; whether all are.

    Args:
        only_shared_code: Whether code is compared only where both have the same configuration.
    """
    same = total = code_same = code = 0
    different: list[str] = []
    for key, wanted in sorted(first.items()):
        have = second.get(key, {})
        for name in sorted({*wanted, *have}):
            is_code = "/" in name
            if is_code and only_shared_code and not (name in wanted and name in have):
                continue
            is_same = wanted.get(name) == have.get(name)
            total, same = total + (not is_code), same + (is_same and not is_code)
            code, code_same = code + is_code, code_same + (is_same and is_code)
            if not is_same:
                different.append(f"{key} {name}")
    print(f"{title}: {same} of {total} kernels, code of {code_same} of {code}")
    print("".join(f"    different: {each}\n" for each in different[:20]), end="")
    return not different and total > 0


def main() -> int:
    """Predicts, runs, compares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--targets", default="h100,h200,mi300x,l4")
    parser.add_argument("--same-as", default="h100,h200", help="targets that the real run is compared with")
    parser.add_argument("--only", default="")
    parser.add_argument("--work", type=Path, default=Path("out/targets-and-gpu"))
    parser.add_argument("--jobs", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=300, help="of one run")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    import torch
    import triton

    has_gpu = torch.cuda.is_available()
    gpu = torch.cuda.get_device_name() if has_gpu else "no GPU"
    print(f"{gpu}, torch {torch.__version__}, triton {triton.__version__}, load {os.getloadavg()[0]:.1f}")
    kinds = [*(["real"] if options.real else []), *(["visible"] if has_gpu else []), "hidden"]
    made: dict[str, Kernels] = {kind: {} for kind in kinds}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        work = {
            pool.submit(run, program, kind, options): kind
            for kind in kinds
            for program in PROGRAMS
            if options.only in program
        }
        for future in concurrent.futures.as_completed(work):
            try:
                made[work[future]] |= future.result()
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                print(f"  {error}", flush=True)
            options.out.write_text(json.dumps(made))
    good = not has_gpu or compare("with the GPU visible and hidden", made["visible"], made["hidden"])
    if options.against:
        elsewhere = json.loads(options.against.read_text())["hidden"]
        chosen = {key: row for key, row in elsewhere.items() if options.only in key.split()[0]}
        good &= compare("here and on the machine without a GPU", chosen, made["hidden"])
    for target in options.same_as.split(",") if options.real else ():
        predicted = {f"{key.split()[0]} real": row for key, row in made["hidden"].items() if key.split()[1] == target}
        good &= compare(f"real on {gpu} and predicted for {target}", made["real"], predicted, only_shared_code=True)
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
