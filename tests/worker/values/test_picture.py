"""Pictures of tensors: cells, marks, slices and windows against torch itself."""

from __future__ import annotations

import json
import math

import pytest
import torch
from irscope.values.run.picture import NoPicture, picture


def test_a_small_tensor_is_shown_element_by_element() -> None:
    tensor = torch.arange(12.0).reshape(3, 4)
    tensor[0, 1], tensor[1, 1], tensor[2, 3] = math.nan, math.inf, -math.inf
    found = picture(tensor, {})
    assert (found["size"], found["extent"], found["window"]) == ([3, 4], [3, 4], [0, 0, 3, 4])
    assert found["cells"] == [0.0, None, 2.0, 3.0, 4.0, None, 6.0, 7.0, 8.0, 9.0, 10.0, None]
    assert (found["nan"], found["posinf"], found["neginf"]) == ([1], [5], [11])
    assert (found["statistics"]["min"], found["statistics"]["max"], found["statistics"]["nan"]) == (0.0, 10.0, 1)
    assert sum(found["histogram"]["counts"]) == 9
    json.dumps(found, allow_nan=False)


def test_a_large_one_by_blocks_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("irscope.values.run.picture._AT_ONCE", 1000)
    tensor = torch.randn(300, 200, dtype=torch.float64)
    tensor[17, 3] = -1e6
    found = picture(tensor, {"most": [100, 50]})
    blocks = tensor.reshape(100, 3, 50, 4)
    assert torch.tensor(found["cells"]).reshape(100, 50).allclose(blocks.mean((1, 3)).float(), rtol=1e-6)
    largest = picture(tensor, {"most": [100, 50], "cell": "largest"})
    signed = torch.where(blocks.amax((1, 3)) >= -blocks.amin((1, 3)), blocks.amax((1, 3)), blocks.amin((1, 3)))
    assert torch.tensor(largest["cells"]).reshape(100, 50).allclose(signed.float(), rtol=1e-6)
    assert largest["cells"][5 * 50] == -1e6
    uneven = picture(tensor, {"most": [7, 9]})
    assert uneven["size"] == [7, 9]
    assert len(uneven["cells"]) == 63


def test_slices_windows_and_other_dtypes() -> None:
    tensor = torch.arange(120).reshape(2, 3, 4, 5)
    found = picture(tensor, {"rows": 3, "columns": 1, "index": [1, 9, 2, 9], "window": [1, 0, 3, 3]})
    assert (found["index"], found["extent"], found["size"]) == ([1, 0, 2, 0], [5, 3], [2, 3])
    assert found["cells"] == tensor[1, :, 2, :].T[1:3, 0:3].reshape(-1).tolist()
    assert picture(torch.tensor([True, False]), {})["cells"] == [1.0, 0.0]
    assert picture(torch.tensor(3, dtype=torch.int8), {})["cells"] == [3.0]
    assert picture(torch.tensor([[3 + 4j]]), {})["cells"] == [5.0]
    assert picture(torch.ones(2, 2).bfloat16(), {"window": [9, 9, 0, 0]})["window"] == [1, 1, 2, 2]


@pytest.mark.parametrize(
    ("value", "view", "said"),
    [
        (3, {}, "int is not a tensor"),
        (torch.ones(0, 3), {}, "has no elements"),
        (torch.ones(2, 2), {"rows": 1}, "two dimensions of 2"),
        (torch.ones(2, 2), {"rows": "0", "columns": 1}, "two dimensions of 2"),
        (torch.ones(2, 2), {"rows": 0, "columns": 7}, "two dimensions of 2"),
    ],
)
def test_what_has_no_picture(value: object, view: dict[str, object], said: str) -> None:
    with pytest.raises(NoPicture, match=said):
        picture(value, view)
