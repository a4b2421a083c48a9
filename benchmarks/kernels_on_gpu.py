"""Whether a GPU computes what Triton's interpreter does: the same kernels, the same inputs.

    python benchmarks/kernels_on_gpu.py --write kernels.pt --python PYTHON STORE…   here: runs the kernels without a GPU
    python benchmarks/kernels_on_gpu.py kernels.pt                                  there: runs them on the GPU and compares

The first call needs irscope, and PYTHON with torch and triton; the stores are those of ``irscope run --target``, as
`kernel_rate.py` keeps them.  The second call needs this file, torch and triton alone (made for torch 2.11 and triton 3.6 on one
H200).  A kernel is the same if no element that it wrote differs by more than four units in the last place of its dtype relative to
the larger of the element and the mean of what was written, and *equal* if all are the same to the bit.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

UNITS = 4
_HEAD = """\
import torch
import triton
import triton.language as tl
from torch._inductor.runtime import triton_helpers
from torch._inductor.runtime.triton_helpers import libdevice, math as tl_math

"""


def main() -> int:
    """Prints JSON; 1 if a kernel differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    if options.write:
        print(write(options.files, options.write, options.python, options.seconds), "launches written")
        return 0
    import torch

    launches = [launch for path in options.files for launch in torch.load(path, weights_only=True)]
    rows = {f"{number} {launch['kernel']}": compared(launch) for number, launch in enumerate(launches)}
    counts = Counter(row["verdict"] for row in rows.values())
    others = {name: row for name, row in rows.items() if row["verdict"] in ("differs", "did not run")}
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
    print(json.dumps({"device": device, "torch": torch.__version__, "kernels": len(rows), **counts, "others": others}, indent=1))  # fmt: skip
    return int(counts["differs"] > 0)


def write(stores: list[Path], path: Path, python: str, seconds: float) -> int:
    """Runs the kernels of stores by the interpreter; writes those of which all programs ran."""
    import torch
    from irscope.values.kernel.running import run_kernels
    from kernel_bugs import kernels_of

    launches: list[Any] = []
    for store in stores:
        with tempfile.TemporaryDirectory() as folder:
            requests = [{**kernel.request(), "seconds": seconds, "keep": f"{folder}/{number}.pt"} for number, kernel in enumerate(kernels_of(store))]  # fmt: skip
            run_kernels(python, requests, 3600)
            launches += [torch.load(each, weights_only=True) for each in sorted(Path(folder).glob("*.pt"))]
    torch.save(launches, path)
    return len(launches)


def compared(launch: dict[str, Any]) -> dict[str, Any]:
    """Runs one launch on the GPU and compares what it wrote."""
    import torch

    memory = {name: storage.cuda() for name, storage in launch["before"].items()}
    given: dict[str, Any] = {**launch["numbers"], **launch["constants"]}
    for name, tensor in launch["tensors"].items():
        dtype = getattr(torch, tensor["dtype"])
        storage = memory[tensor["memory"]]
        whole = storage[: len(storage) // dtype.itemsize * dtype.itemsize].view(dtype)
        given[name] = whole.as_strided(tensor["shape"], tensor["strides"], tensor["offset"])
    try:
        kernel = compiled(launch["text"], launch["kernel"])
        kernel[launch["grid"]](**{name: each for name, each in given.items() if name in launch["parameters"]})
        torch.cuda.synchronize()
    except Exception as error:  # noqa: BLE001  of a kernel of another version
        return {"verdict": "did not run", "why": f"{type(error).__name__}: {str(error)[:200]}"}
    worst, is_equal = 0.0, True
    dtypes = {tensor["memory"]: tensor["dtype"] for tensor in launch["tensors"].values()}
    for name, stored in launch["stored"].items():
        dtype = getattr(torch, dtypes[name])
        count = len(stored) * dtype.itemsize
        mine, other = (storage[:count].cpu().view(dtype)[stored] for storage in (launch["after"][name], memory[name]))
        if not mine.numel():
            continue
        is_equal &= bool(torch.equal(mine.view(torch.uint8), other.view(torch.uint8)))
        worst = max(worst, units(mine, other, dtype))
    verdict = "equal" if is_equal else "same" if worst <= UNITS else "differs"
    return {"verdict": verdict, "units in the last place": round(worst, 3)}


def units(mine: Any, other: Any, dtype: Any) -> float:
    """The largest difference, in units in the last place."""
    import torch

    first, second = mine.double(), other.double()
    same = (first == second) | (first.isnan() & second.isnan())
    if bool(same.all()):
        return 0.0
    finite = first.isfinite() & second.isfinite()
    if not dtype.is_floating_point or not bool((finite | same).all()):
        return float("inf")
    scale = torch.maximum(first.abs(), first[finite].abs().mean()) * torch.finfo(dtype).eps
    return float(((first - second).abs() / scale)[finite].max())


def compiled(text: str, name: str) -> Any:
    """The kernel of a text, without the decorator by which Inductor tunes it."""
    lines, at = text.split("\n"), text[: text.index("@triton.jit")].count("\n")
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
        file.write(_HEAD + "\n".join(lines[at:]))
    spec = importlib.util.spec_from_file_location("kernel", file.name)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


if __name__ == "__main__":
    sys.exit(main())
