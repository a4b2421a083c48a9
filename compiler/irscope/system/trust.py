"""What a store or a file hands over is executed or unpickled only if the user gives its digest."""

from __future__ import annotations

_LEAST_DIGEST = 12


class TrustError(Exception):
    """Nothing was loaded; the message says why."""


def check_trust(what: str, digest: str, trusted: str, how: str = "") -> None:
    """Raises TrustError if the digest that the user trusts is not this one.

    Args:
        digest: The SHA-256 of what is to be loaded, in hexadecimal.
        trusted: What the user gave: the digest or a prefix of it; empty: nothing.
        how: A sentence that says how to trust it.
    """
    given = trusted.lower().removeprefix("sha256:")
    if len(given) < _LEAST_DIGEST or not digest.startswith(given):
        other = f", not {trusted}" if trusted else ""
        raise TrustError(f"The digest of {what} is {digest}{other}. Nothing was loaded.{how and f' {how}'}")


def to_trust(digest: str) -> str:
    """The option that names a digest."""
    return f"--trust {digest[:_LEAST_DIGEST]}"
