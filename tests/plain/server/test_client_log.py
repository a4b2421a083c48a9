"""irscope's log in the client's window."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

from irscope_server.app.serve import ClientLog


class Server:
    """Keeps what is sent; an entry that says so fails, and the failure is logged."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.log = logging.Logger("client", logging.INFO)

    def window_log_message(self, params: Any) -> None:
        self.sent.append(params.message)
        if params.message == "fails":
            self.log.error("sending failed")


async def _logged(server: Any) -> None:
    server.log.addHandler(ClientLog(server, asyncio.get_running_loop()))
    server.log.info("ended")
    server.sent.append("what is told next")
    server.log.info("fails")
    other = threading.Thread(target=server.log.info, args=("of a thread",))
    other.start()
    other.join()
    server.sent.append("told while the thread waits")
    await asyncio.sleep(0)


def test_what_the_loop_logs_comes_before_what_is_told_next() -> None:
    server = Server()
    asyncio.run(_logged(server))
    assert server.sent[:4] == ["ended", "what is told next", "fails", "told while the thread waits"]
    assert sorted(server.sent[4:]) == ["of a thread", "sending failed"]
