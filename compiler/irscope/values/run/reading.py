"""What a value run has kept, read from its store without torch.

Everything here may come from elsewhere: what does not fit together raises `DamagedValues` and nothing is executed.
"""

from __future__ import annotations

import os
import re
from typing import Any

from irscope.pipelines.registry import role_of
from irscope.protocol import Report
from irscope.store.store import Store
from irscope.store.value_file import DamagedValues, StoredTensor, ValueReader, folder_of
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.stages import Role

_PLAIN_NAME = re.compile(r"[\w.-]+")


@dataclass(frozen=True)
class StoredValues:
    """The values of one graph stage at one call.

    Args:
        id, stage: ID of the stage ``values``, and of the graph stage.
        folder: Where the run keeps its tensors.
    """

    id: str
    stage: str
    compile: str
    data: Any
    folder: str

    def names(self) -> list[str]:
        """The names of the nodes with a value, in the order of the graph."""
        return [str(node["name"]) for node in self.data["nodes"]]

    def value(self, node: str) -> dict[str, Any] | None:
        """The value of a node, as it is in the data; None if there is none."""
        found = next((each["value"] for each in self.data["nodes"] if each["name"] == node), None)
        return found if isinstance(found, dict) and "kind" in found else None

    def path(self) -> str:
        """The file that holds the elements.  Raises DamagedValues if the name is not one."""
        name = str(self.data.get("file") or "")
        if not _PLAIN_NAME.fullmatch(name) or name.startswith("."):
            raise DamagedValues(
                "the elements of these values were not kept" if not name else f"{name!r} is not a value file"
            )
        return os.path.join(self.folder, name)

    def elements(self, value: dict[str, Any], start: int, count: int) -> list[Any]:
        """Elements of a tensor in row-major order.  Raises DamagedValues, and OSError where the file is gone."""
        tensor = StoredTensor.of(value)
        if tensor is None:
            raise DamagedValues("the elements of this tensor were not kept")
        with ValueReader(self.path()) as reader:
            return reader.elements(tensor, start, count)


def stored_values(store: Store, report: Report) -> list[StoredValues]:
    """All that a run has kept; those of a damaged stage are left out."""
    folder = folder_of(store.path, report.run)
    found = []
    for compile in report.compiles:
        for stage in compile.stages:
            if role_of(stage.name) is Role.VALUES:
                data = store.stage_data(report.run, stage.id)
                if isinstance(data, dict) and _is_sound(data):
                    found.append(StoredValues(stage.id, str(data["stage"]), compile.id, data, folder))
    return found


def divergences(store: Store, report: Report) -> list[tuple[str, dict[str, Any]]]:
    """The comparisons of a run: ids of the stages with their data."""
    found = []
    for compile in report.compiles:
        for stage in compile.stages:
            if role_of(stage.name) is Role.DIVERGENCE:
                data = store.stage_data(report.run, stage.id)
                if isinstance(data, dict) and isinstance(data.get("nodes"), list):
                    found.append((stage.id, data))
    return found


def _is_sound(data: dict[str, Any]) -> bool:
    nodes = data.get("nodes")
    return (
        isinstance(nodes, list)
        and "stage" in data
        and all(
            isinstance(node, dict) and isinstance(node.get("name"), str) and isinstance(node.get("value"), dict)
            for node in nodes
        )
    )
