"""HTTP for the page of `irscope view`: loopback only, data only for clients that sent the token.

The page itself, its scripts and styles hold no data, so everybody on this machine may have them; what is in the store
goes to clients that send the cookie, which is given for the token.  The token comes to the page behind the ``#`` of its
address, so it is in no log and no Referer.  A Host that is not a loopback name is another site's name that points here
(DNS rebinding); an Origin that is not this one is another site's page.
"""

from __future__ import annotations

import contextlib
import gzip
import hmac
import html
import json
import queue
import re
import secrets
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from irscope_server.view import assets
from irscope_server.view.address import Address
from irscope_server.view.news import News, TooMany
from irscope_server.view.reader import Reader, Refused

_LOOPBACK = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?")
_MOST_BODY_BYTES = 64 * 1024
_MOST_DIGITS = 9
"""The most digits of a length: `int` refuses thousands."""
_ZIPPED_FROM_BYTES = 16 * 1024
_IDLE_SECONDS = 60
_HEARTBEAT_SECONDS = 15
_THEMES = ("dark", "light", "hc-dark", "hc-light")

_NO_ASSETS = "The page is not built. In a checkout of irscope: npm run build; then start `irscope view` again.\n"


class ViewServer(ThreadingHTTPServer):
    """Serves on 127.0.0.1.

    Args:
        port: 0: any that is free.  Raises OSError if it is not.
    """

    daemon_threads = True
    request_queue_size = 64
    allow_reuse_address = True

    def __init__(self, reader: Reader, token: str, port: int = 0) -> None:
        self.reader = reader
        self.news = News(reader)  # before the socket: where that fails, `server_close` is called
        reader.on_made = lambda run: self.news.told_of(run)
        super().__init__(("127.0.0.1", port), _Handler)
        self.address = Address(self.server_address[1], token, reader.archive.path)

    @property
    def cookie(self) -> str:
        """Cookies do not tell ports apart, so the port is in the name."""
        return f"irscope-view-{self.address.port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A page that was closed in the middle of an answer is not worth a report."""

    def server_close(self) -> None:
        """Stop listening; pages that wait for news are let go first."""
        self.news.close()
        super().server_close()


class _Handler(BaseHTTPRequestHandler):
    server: ViewServer
    protocol_version = "HTTP/1.1"
    server_version = "irscope"
    sys_version = ""
    timeout = _IDLE_SECONDS

    def handle_one_request(self) -> None:
        """A request that fails unexpectedly is answered, too, for example by an address that no URL can be."""
        try:
            super().handle_one_request()
        except ValueError:
            self.send_error(400)

    def do_GET(self) -> None:
        if not self._is_for_us():
            return
        url = urlsplit(self.path)
        first, _, rest = url.path.lstrip("/").partition("/")
        if url.path == "/":
            self._page(None, "")
        elif first == "panel" and rest in assets.panels():
            self._page(rest, parse_qs(url.query).get("theme", [""])[0])
        elif first == "static" and (asset := assets.read(rest)) is not None:
            self._send(200, *asset, cache="no-cache")
        elif url.path == "/events":
            self._events()
        else:
            self._say(404, "Not found.\n")

    do_HEAD = do_GET

    def do_POST(self) -> None:
        body = self._body()
        if body is None or not self._is_for_us():
            return
        if self.path == "/open":
            self._open(body)
        elif self.path not in ("/session", "/request"):
            self._say(404, "Not found.\n")
        elif self.headers.get("Origin") != f"http://{self.headers.get('Host')}":
            self._say(403, "Only the page of this address may ask.\n")
        elif self.path == "/session":
            self._session(body)
        else:
            self._request(body)

    # --- who may ask --------------------------------------------------------------------------------------------------

    def _is_for_us(self) -> bool:
        """Whether the Host is this machine, whatever port a tunnel gave it; answers where it is not."""
        hosts = self.headers.get_all("Host") or []
        if len(hosts) == 1 and _LOOPBACK.fullmatch(hosts[0]):
            return True
        self._say(421, "This is served for 127.0.0.1 and localhost only.\n")
        return False

    def _has_session(self) -> bool:
        for part in (self.headers.get("Cookie") or "").split(";"):
            name, _, value = part.strip().partition("=")
            if name == self.server.cookie and self._is_token(value):
                return True
        self._say(401, "This needs the address with its token; `irscope view` prints it.\n")
        return False

    def _is_token(self, given: object) -> bool:
        token = self.server.address.token
        return isinstance(given, str) and hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())

    # --- what is asked ------------------------------------------------------------------------------------------------

    def _session(self, body: Any) -> None:
        if not isinstance(body, dict) or not self._is_token(body.get("token")):
            self._say(401, "This is not the token; `irscope view` prints the address with it.\n")
            return
        cookie = f"{self.server.cookie}={self.server.address.token}; Path=/; HttpOnly; SameSite=Strict"
        self._send(204, b"", "", headers={"Set-Cookie": cookie})

    def _request(self, body: Any) -> None:
        if not self._has_session():
            return
        method = body.get("method") if isinstance(body, dict) else None
        if not isinstance(method, str):
            self._say(400, 'The body must be {"method": …, "params": …}.\n')
            return
        try:
            result = self.server.reader.answer(method, body.get("params"))
        except Refused as error:
            self._json(json.dumps({"error": str(error)}))
        except Exception as error:  # noqa: BLE001  a store that was damaged, in whatever way
            self._json(json.dumps({"error": f"{method} could not be answered: {type(error).__name__}: {error}"}))
        else:
            self._json(f'{{"result": {result}}}')

    def _open(self, body: Any) -> None:
        """Another command of this user wants something to be seen.  It has the token, and no browser sends this header."""
        scheme, _, token = (self.headers.get("Authorization") or "").partition(" ")
        if scheme != "Bearer" or not self._is_token(token):
            self._say(401, "This needs the token.\n")
        elif not isinstance(body, dict) or not all(isinstance(value, str) for value in body.values()):
            self._say(400, "The body must be an object of strings.\n")
        else:
            pages = self.server.news.tell({"type": "open", "subject": body}) if body else 0
            self._json(json.dumps({"pages": pages}))

    def _events(self) -> None:
        if not self._has_session():
            return
        try:
            listener = self.server.news.listen()
        except TooMany as error:
            self._say(503, f"{error}\n")
            return
        self.close_connection = True
        try:
            self._head(200, "text/event-stream", None, {"Cache-Control": "no-store"})
            if self.command == "HEAD":
                return
            self.wfile.write(b"retry: 1500\n\n")
            for message in self._messages(listener.messages):
                self.wfile.write(message)
        except OSError:
            pass  # the page is gone
        finally:
            self.server.news.leave(listener)

    def _messages(self, messages: queue.Queue[str | None]) -> Iterator[bytes]:
        while True:
            try:
                message = messages.get(timeout=_HEARTBEAT_SECONDS)
            except queue.Empty:
                yield b": still here\n\n"
                continue
            if message is None:
                return
            yield b"data: " + message.encode("utf-8", "surrogatepass") + b"\n\n"

    # --- the page -----------------------------------------------------------------------------------------------------

    def _page(self, panel: str | None, theme: str) -> None:
        """The page, or the frame of a panel: only its script and its styles."""
        if assets.folder() is None:
            self._say(503, _NO_ASSETS)
            return
        nonce = secrets.token_urlsafe(18)
        name = panel or "view"
        policy = [
            "default-src 'none'",
            f"script-src 'nonce-{nonce}'",
            f"style-src 'self' 'nonce-{nonce}'",
            "connect-src 'self'" if panel is None else "connect-src 'none'",
            "img-src 'self' data: blob:",
            "worker-src blob:",
            "frame-src 'self'" if panel is None else "frame-src 'none'",
            "frame-ancestors 'none'" if panel is None else "frame-ancestors 'self'",
            "base-uri 'none'",
            "form-action 'none'",
        ]
        more = f' data-theme="{theme}"' if theme in _THEMES else ""
        if panel is None:
            more += f' data-panels="{" ".join(assets.panels())}"'
        page = f"""<!DOCTYPE html>
<html lang="en"{more}>
<head>
  <meta charset="UTF-8">
  <meta name="viewport" content="width=device-width, initial-scale=1.0">
  <meta name="color-scheme" content="light dark">
  <link rel="icon" href="data:,">
  <link rel="stylesheet" href="/static/theme.css">
  <link rel="stylesheet" href="/static/{name}.css">
  <title>{html.escape("irscope" if panel is None else f"irscope {panel}")}</title>
</head>
<body>
  <script nonce="{nonce}" src="/static/{name}.js"></script>
</body>
</html>
"""
        self._send(200, page.encode(), "text/html; charset=utf-8", {"Content-Security-Policy": "; ".join(policy)})

    # --- HTTP ---------------------------------------------------------------------------------------------------------

    def _body(self) -> Any:
        """The JSON that was sent; if there is none, answers with an error and returns None."""
        length = self.headers.get("Content-Length") or ""
        self.close_connection = self.close_connection or not length.isdecimal()
        if not length.isdecimal() or len(length) > _MOST_DIGITS or int(length) > _MOST_BODY_BYTES:
            self.close_connection = True  # what comes is not read
            self._say(413 if length.isdecimal() else 411, "A body of at most 64 kB is read.\n")
            return None
        data = self.rfile.read(int(length))
        if (self.headers.get("Content-Type") or "").partition(";")[0].strip().lower() != "application/json":
            self._say(415, "The body must be JSON.\n")  # a form of another site cannot send this type
            return None
        try:
            return json.loads(data) or {}
        except (ValueError, RecursionError):
            self._say(400, "The body is not JSON.\n")
            return None

    def _json(self, text: str) -> None:
        self._send(200, text.encode("utf-8", "surrogatepass"), "application/json; charset=utf-8")

    def _say(self, status: int, text: str) -> None:
        self._send(status, text.encode(), "text/plain; charset=utf-8")

    def _send(
        self, status: int, body: bytes, kind: str, headers: dict[str, str] | None = None, cache: str = "no-store"
    ) -> None:
        more = {"Cache-Control": cache, **(headers or {})}
        if len(body) >= _ZIPPED_FROM_BYTES and "gzip" in (self.headers.get("Accept-Encoding") or ""):
            body = gzip.compress(body, 1)  # for those who come through a tunnel
            more["Content-Encoding"] = "gzip"
        with contextlib.suppress(OSError):
            self._head(status, kind, len(body), more)
            if self.command != "HEAD":
                self.wfile.write(body)

    def _head(self, status: int, kind: str, length: int | None, headers: dict[str, str]) -> None:
        self.send_response(status)
        if kind:
            self.send_header("Content-Type", kind)
        if length is not None:
            self.send_header("Content-Length", str(length))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What `http.server` itself refuses: unknown methods, broken requests.  Its own page would repeat the request."""
        if not hasattr(self, "headers"):
            self.headers = self.MessageClass()
        self.close_connection = True
        if code == 501:
            code = 405
        self._say(code, "This request cannot be answered.\n")

    def log_message(self, format: str, *args: Any) -> None:
        """None: the terminal shows the address."""


def free_port_refused(error: OSError, port: int) -> str:
    """Why a server did not start, in words."""
    return f"Port {port} of 127.0.0.1 cannot be used ({error.strerror or error}); name another, or leave --port out."
