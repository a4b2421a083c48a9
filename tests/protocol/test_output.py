"""What scripts print, on its way to the client."""

from __future__ import annotations

import asyncio

from irscope_server.output import OutputRelay


async def test_pieces_of_a_stream_that_follow_each_other_are_one_message() -> None:
    sent: list[tuple[str, str]] = []
    relay = OutputRelay(lambda stream, text: sent.append((stream, text)))
    for stream, text in (("stdout", "a"), ("stdout", "b"), ("stderr", "c"), ("stdout", "d")):
        relay.add(stream, text)
    assert sent == []
    await asyncio.sleep(0.1)
    assert sent == [("stdout", "ab"), ("stderr", "c"), ("stdout", "d")]


async def test_a_flood_is_cut_and_says_so() -> None:
    sent: list[tuple[str, str]] = []
    relay = OutputRelay(lambda stream, text: sent.append((stream, text)))
    for _ in range(100):
        relay.add("stdout", "x" * 1000)
    relay.flush()
    ((_, text),) = sent
    assert text == "x" * 65536 + f"\n[irscope: {100_000 - 65536} more characters are not shown]\n"
    relay.add("stdout", "afterwards")
    relay.flush()
    assert sent[-1] == ("stdout", "afterwards")
