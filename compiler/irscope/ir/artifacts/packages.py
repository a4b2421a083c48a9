"""Reads packages and libraries of AOTInductor."""

from __future__ import annotations

import os
import re
from typing import Any

from irscope.ir.artifacts.contents import Artifact, Part
from irscope.ir.artifacts.reading import MOST_NAME, digest_of, json_of, members
from irscope.vocabulary.dtypes import OF_CPP

_OF_PACKAGE = {
    "AOTI_DEVICE_KEY": "device",
    "AOTI_PLATFORM": "platform",
    "AOTI_MACHINE": "machine",
    "AOTI_CPU_ISA": "CPU features",
    "AOTI_COMPUTE_CAPABILITY": "compute capability",
}


def read_package(path: str, artifact: Artifact) -> None:
    """What ``aoti_compile_and_package`` writes."""
    artifact.digest, artifact.size = digest_of(path), os.path.getsize(path)
    for name, data in members(path, artifact, re.compile(r"metadata\.json$|\.cpp$")):
        if name.endswith(".json"):
            facts = json_of(data)
            for key, label in _OF_PACKAGE.items():
                if isinstance(facts, dict) and isinstance(facts.get(key), str) and facts[key]:
                    artifact.made_for[label] = facts[key]
        else:
            texts = artifact.kernels if ".kernel." in name else artifact.graphs
            texts[os.path.basename(name)] = text = data.decode(errors="replace")
            if ".kernel." not in name:
                _take_checks(text, artifact)


_CHECKS = re.compile(
    r"input_handles\[(?P<input>\d{1,4})\]: (?P<what>unmatched dtype|unmatched (?P<of>dim|stride) value at (?P<at>\d{1,2})"
    r"|dim value is too (?P<way>small|large) at (?P<end>\d{1,2})|unmatched device type),[^;]{0,200}?"
    r"(?:\((?:at::)?k(?P<dtype>\w+)\)|\d\((?P<device>\w+)\)|(?:<=|>=|expected:) (?P<number>\d{1,18}))"
)


def _take_checks(text: str, artifact: Artifact) -> None:
    """The inputs of a package, from the checks of its wrapper; none if a dimension is not the last or has a gap."""
    facts: dict[int, dict[str, Any]] = {}
    for found in _CHECKS.finditer(text):
        fact = facts.setdefault(int(found["input"]), {"dim": {}, "stride": {}})
        if found["dtype"]:
            fact["dtype"] = f"torch.{OF_CPP.get(found['dtype'], found['dtype'].lower())}"
        elif found["device"]:
            fact["device"] = f"device(type={found['device']!r})"
        elif found["of"]:
            fact[found["of"]][int(found["at"])] = found["number"]
        elif found["way"]:
            low, _, high = fact["dim"].get(int(found["end"]), "..").partition("..")
            low, high = (found["number"], high) if found["way"] == "small" else (low, found["number"])
            fact["dim"][int(found["end"])] = f"{low}..{high}"
    for index, fact in sorted(facts.items()):
        rank = max([*fact["dim"], *fact["stride"]], default=-1) + 1
        artifact.inputs[f"input {index}"] = {
            "shape": f"torch.Size([{', '.join(fact['dim'].get(at, '..') for at in range(rank))}])",
            "dtype": fact.get("dtype", ""),
            "device": fact.get("device", ""),
            "stride": f"({', '.join(fact['stride'].get(at, '..') for at in range(rank))}{',' * (rank == 1)})",
        }

    for found in _CONSTANT.finditer(text):
        shape, stride = (", ".join(found[field].split(", ")) for field in ("shape", "stride"))
        artifact.weights[found["name"][:MOST_NAME]] = {
            "shape": f"torch.Size([{shape}])",
            "dtype": f"torch.{found['dtype']}",
            "device": f"device(type={found['device']!r})",
            "stride": f"({stride}{',' * (stride != '' and ', ' not in stride)})",
        }


_CONSTANT = re.compile(
    r"\.dtype = cached_torch_dtype_(?P<dtype>\w{1,30});\s+constants_info_\[\d+\]\.device_type = cached_torch_device_type_(?P<device>\w{1,30});"
    r"[^}]{0,400}?\.from_folded = false;[^}]{0,300}?\.shape = \{(?P<shape>[\d, ]*)\};\s+constants_info_\[\d+\]\.stride = \{(?P<stride>[\d, ]*)\};"
    r"[^;}]{0,200};\s+constants_info_\[\d+\]\.original_fqn = \"(?P<name>[^\"\n]*)\""
)


def read_library(path: str, artifact: Artifact) -> None:
    """A shared library of AOTInductor: only its size is known without loading it."""
    artifact.digest, artifact.size = digest_of(path), os.path.getsize(path)
    artifact.parts.append(Part("library", artifact.size))
