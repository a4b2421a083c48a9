"""The pipe between a run's process and its driver, into which a script may write, too."""

from __future__ import annotations

import os
import random
import threading

import pytest
from irscope.protocol import CaptureGap, DataWritten, GapSeen, Progress, SourceWritten, pack_message, unpack_message
from irscope.protocol.frames import LONGEST, MARK, FrameReader, Payload, frame
from irscope.runner.messages import MessagePipe


def read(data: bytes, size: int = 1 << 16) -> tuple[list[bytes], int, bytes]:
    """The payloads, how many frames were missed, and what belongs to none."""
    reader = FrameReader()
    parts = [part for start in range(0, len(data), size) for part in reader.feed(data[start : start + size])]
    parts += reader.rest()
    payloads = [part for part in parts if isinstance(part, Payload)]
    return (
        [one.data for one in payloads],
        sum(one.missed for one in payloads),
        b"".join(p for p in parts if isinstance(p, bytes)),
    )


@pytest.mark.parametrize("size", [1, 3, 24, 1 << 16])
def test_frames_come_back_however_they_are_cut(size: int) -> None:
    payloads = [b"", b"x", MARK, MARK * 3 + b"y", os.urandom(5000)]
    data = b"".join(frame(number, payload) for number, payload in enumerate(payloads))
    assert read(data, size) == (payloads, 0, b"")


@pytest.mark.parametrize(
    "rubbish", [b"rubbish", MARK, MARK + bytes(30), frame(7, b"cut off")[:-1], b"\xf5" * 9, b"\0" * 70_000]
)
@pytest.mark.parametrize("size", [5, 1 << 16])
def test_the_next_good_frame_is_found(rubbish: bytes, size: int) -> None:
    payloads, missed, strange = read(frame(0, b"a") + rubbish + frame(1, b"b") + rubbish, size)
    assert (payloads, missed, strange) == ([b"a", b"b"], 0, rubbish * 2)


def test_a_frame_into_which_another_thread_has_written_is_missed() -> None:
    whole = frame(1, b"x" * 100)
    payloads, missed, strange = read(frame(0, b"a") + whole[:50] + b"rubbish" + whole[50:] + frame(2, b"b"))
    assert payloads == [b"a", b"b"] and missed == 1 and b"rubbish" in strange


def test_a_head_that_claims_more_than_there_is_hides_nothing() -> None:
    payloads, missed, _ = read(frame(0, b"a" * 1000)[:24] + frame(0, b"b") + frame(1, b"c"))
    assert payloads == [b"b", b"c"] and missed == 0


def test_random_damage() -> None:
    chance = random.Random(7)
    for _ in range(200):
        data = bytearray(b"".join(frame(number, chance.randbytes(chance.randrange(60))) for number in range(8)))
        data[chance.randrange(len(data))] ^= 1 + chance.randrange(255)
        payloads, missed, _ = read(bytes(data), chance.choice((3, 1000)))
        assert len(payloads) == 7 and missed in (0, 1)  # 0: it was the last one


def test_rubbish_without_end_is_not_kept() -> None:
    reader = FrameReader()
    for _ in range(200):
        assert sum(map(len, reader.feed(b"\xf5" * (1 << 16)))) >= (1 << 16) - 4  # type: ignore[arg-type]
        assert len(reader._bytes) < 4
    assert [part.data for part in reader.feed(frame(0, b"a")) if isinstance(part, Payload)] == [b"a"]


@pytest.mark.parametrize(
    "message",
    [
        Progress("é"),
        SourceWritten("a.py", "x = '\ud800'\n" * 3),
        DataWritten("0/0/x", "{}", 3),
        DataWritten("0/0/x"),
        GapSeen(CaptureGap("a\nb", "c")),
    ],
)
def test_messages_come_back(message: Progress) -> None:
    assert unpack_message(pack_message(message)) == message


@pytest.mark.parametrize(
    "payload",
    [
        b"", b"[]", b"{}\n", b'{"is": "SourceWritten", "file": "a", "texts": {"text": 5}}\nabc', b"[" * 100_000,
        b'{"is": "SourceWritten", "file": "a", "texts": {"file": 1}}\nabc', b'{"is": "SourceWritten", "file": "a", "texts": 3}\n',
        b'{"is": "SourceWritten", "file": "a", "texts": {"text": -1}}\nabc', b'{"is": "Progress", "text": "a", "texts": {"text": 1}}\nb',
    ],
)  # fmt: skip
def test_what_is_no_message_is_refused(payload: bytes) -> None:
    with pytest.raises((ValueError, KeyError, TypeError, RecursionError)):
        unpack_message(payload)


def test_what_a_signal_handler_sends_follows_what_is_being_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    out, into = os.pipe()
    pipe = MessagePipe(into)
    write, once = os.write, [True]

    def interrupted(fd: int, data: bytes) -> int:
        if once.pop():
            once.append(False)
            pipe.send(Progress("of the handler"))
            return write(fd, data[:10])
        once.append(False)
        return write(fd, data)

    monkeypatch.setattr(os, "write", interrupted)
    pipe.send(Progress("first"))
    monkeypatch.undo()
    pipe.close()
    with os.fdopen(out, "rb") as file:
        payloads, missed, strange = read(file.read())
    assert [unpack_message(one) for one in payloads] == [Progress("first"), Progress("of the handler")]
    assert (missed, strange) == (0, b"")


def test_threads_do_not_write_into_each_other_s_messages() -> None:
    out, into = os.pipe()
    pipe = MessagePipe(into)
    text = "x" * 200_000  # more than a pipe takes at once
    threads = [threading.Thread(target=lambda n=n: pipe.send(SourceWritten(f"{n}.py", text))) for n in range(8)]
    reader: list[bytes] = []
    reading = threading.Thread(target=lambda: reader.append(os.fdopen(out, "rb").read()))
    for thread in [reading, *threads]:
        thread.start()
    for thread in threads:
        thread.join()
    pipe.close()
    reading.join()
    payloads, missed, strange = read(reader[0])
    assert len(payloads) == 8 and (missed, strange) == (0, b"")


def test_a_number_that_the_script_has_taken_is_not_written_to(tmp_path: object) -> None:
    out, into = os.pipe()
    pipe = MessagePipe(into)
    os.close(pipe.fd)
    mine, other = os.pipe()
    os.dup2(other, pipe.fd)
    number = pipe.fd
    pipe.send(Progress("x"))
    assert pipe.fd == -1
    os.close(number)
    os.close(other)
    with os.fdopen(mine, "rb") as file, os.fdopen(out, "rb") as ours:
        assert (file.read(), ours.read()) == (b"", b"")


def test_a_message_that_is_too_long_leaves_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    out, into = os.pipe()
    pipe = MessagePipe(into)
    monkeypatch.setattr("irscope.runner.messages.LONGEST", 1000)
    assert LONGEST > 1000
    pipe.send(SourceWritten("a.py", "x" * 2000))
    pipe.close()
    with os.fdopen(out, "rb") as file:
        [payload] = read(file.read())[0]
    message = unpack_message(payload)
    assert isinstance(message, GapSeen) and "SourceWritten" in message.gap.what
