"""Where a server of `irscope view` listens: how it is opened in a browser, and found by the next command.

The address holds the token, so it is written only where other users cannot read it: command lines can be read by
all users of a machine, so the browser is sent to a file of this user, and that leads to the address.
"""

from __future__ import annotations

import contextlib
import hashlib
import html
import json
import os
import secrets
import urllib.error
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

from irscope.store.store import default_path


@dataclass(frozen=True)
class Address:
    """Where a server listens, the token that it asks for, and the store that it shows."""

    port: int
    token: str
    store: str

    def url(self, subject: dict[str, str]) -> str:
        """The page; what it shows and the token are behind the ``#``, which no browser sends to a server."""
        return (
            f"http://127.0.0.1:{self.port}/#{urlencode({'token': self.token, **subject}, quote_via=quote, safe='/:')}"
        )

    def ask(self, subject: dict[str, str]) -> int:
        """Shows something in the pages that are open; returns how many.  Raises OSError if no server is running."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/open",
            json.dumps(subject).encode(),
            {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"},
        )
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(request, timeout=5) as answer:
            return int(json.load(answer)["pages"])


def new_token() -> str:
    """A new random token, safe in URLs."""
    return secrets.token_urlsafe(24)


def remember(address: Address) -> None:
    """Writes the address down for the next command; it does without where that cannot be."""
    with contextlib.suppress(OSError):
        _write(_note(address.store), json.dumps(asdict(address)))


def forget(address: Address) -> None:
    """Takes back what `remember` wrote, and the file that a browser was sent to."""
    if (known := _read(address.store)) is not None and known.token == address.token:
        _note(address.store).unlink(missing_ok=True)
    _door(address).unlink(missing_ok=True)


def running(store: str, subject: dict[str, str]) -> tuple[Address, int] | None:
    """The server of a store that listens already, with the number of its pages, which show the subject now."""
    address = _read(store)
    if address is None:
        return None
    try:
        return address, address.ask(subject)
    except (OSError, ValueError, KeyError, urllib.error.URLError):
        return None  # it is gone, or another program has its port


def door(address: Address, subject: dict[str, str]) -> str:
    """A ``file:`` URI that leads a browser to the page."""
    url = html.escape(address.url(subject), quote=True)
    _write(
        _door(address),
        f'<!DOCTYPE html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>irscope</title>'
        f'<meta http-equiv="refresh" content="0; url={url}"><p><a href="{url}">irscope view</a></p>\n',
    )
    return _door(address).as_uri()


def _folder() -> Path:
    """A folder that only this user can read."""
    return Path(default_path()).parent / "view"


def _note(store: str) -> Path:
    return _folder() / f"{hashlib.sha256(os.fsencode(os.path.realpath(store))).hexdigest()[:24]}.json"


def _door(address: Address) -> Path:
    return _folder() / f"open-{address.port}.html"


def _read(store: str) -> Address | None:
    try:
        return Address(**json.loads(_note(store).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.chmod(path.parent, 0o700)
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
