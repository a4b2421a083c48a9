"""What scripts print, on its way to the client."""

from __future__ import annotations

import asyncio
import threading
import time

from irscope_server.running import output
from irscope_server.running.output import OutputRelay
from support import Instant, passed_at_this_load


async def test_pieces_of_a_stream_that_follow_each_other_are_one_message() -> None:
    sent: list[tuple[str, str]] = []
    relay = OutputRelay(asyncio.get_running_loop(), lambda stream, text: sent.append((stream, text)))
    for stream, text in (("stdout", "a"), ("stdout", "b"), ("stderr", "c"), ("stdout", "d")):
        relay.put(stream, text)
    assert sent == []
    await asyncio.sleep(0.1)
    assert sent == [("stdout", "ab"), ("stderr", "c"), ("stdout", "d")]


async def test_a_flood_arrives_whole_and_what_waits_is_bounded() -> None:
    """The script's thread is kept waiting, so that what is not sent yet never grows beyond a bound."""
    sent: list[str] = []
    loop = asyncio.get_running_loop()
    relay = OutputRelay(loop, lambda stream, text: sent.append(text))
    pieces = [f"{number:06d} {'x' * 9_000}\n" for number in range(100)]
    largest = 0

    def print_all() -> None:
        nonlocal largest
        for piece in pieces:
            relay.put("stdout", piece)
            largest = max(largest, relay._size)

    begun = time.monotonic()
    await asyncio.to_thread(print_all)
    relay.flush()
    assert "".join(sent) == "".join(pieces)
    assert largest <= output._MOST + 10_000
    assert len(sent) >= 6 and time.monotonic() - begun >= 5 * output._PAUSE, "it came in several messages"


async def test_nobody_waits_for_room_when_the_run_is_to_end() -> None:
    stop = threading.Event()
    relay = OutputRelay(asyncio.get_running_loop(), lambda stream, text: None, stop.is_set)
    relay.put("stdout", "x" * output._MOST)
    stop.set()
    begun = Instant()
    relay.put("stdout", "y")  # on the loop's own thread, which could never make room meanwhile
    assert passed_at_this_load(begun) < 0.5


async def test_a_client_that_takes_nothing_stops_no_run_for_good() -> None:
    sent: list[tuple[str, str]] = []
    relay = OutputRelay(asyncio.get_running_loop(), lambda stream, text: sent.append((stream, text)))
    patience, output._PATIENCE = output._PATIENCE, 0.2
    try:
        relay.put("stdout", "x" * output._MOST)
        relay.put("stdout", "lost")
    finally:
        output._PATIENCE = patience
    relay.flush()
    assert sent[0] == ("stdout", "x" * output._MOST)
    assert sent[1] == ("stderr", "\n[irscope: 4 more characters were printed while the editor took none]\n")
