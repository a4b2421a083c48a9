"""The frames of the protocols: what no client sends does not end the server."""

from __future__ import annotations

import io

import pytest
from irscope_server.base.transport import END, read_frame

GOOD = b"Content-Length: 2\r\n\r\n{}"


@pytest.mark.parametrize(
    "broken",
    [
        b"Content-Length: " + b"9" * 5_000 + b"\r\n\r\n",
        b"Content-Length: 99999999999999999999\r\n\r\n",
        b"Content-Length: -1\r\n\r\n",
        b"Content-Length: x\r\n\r\n",
        b"\r\n\r\n\r\n",
        b"y" * 200_000 + b"\r\n",
    ],
)
def test_a_header_that_cannot_be_is_passed_over(broken: bytes) -> None:
    stream = io.BytesIO(broken + GOOD)
    assert read_frame(stream) == {}
    assert read_frame(stream) is END


def test_leading_zeros_count_for_nothing() -> None:
    assert read_frame(io.BytesIO(b"Content-Length: " + b"0" * 5_000 + b"2\r\n\r\n{}")) == {}
