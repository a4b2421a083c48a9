"""What an entry of the tables of followed hints holds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Followed:
    """A break, a piece of its hints, and the file of somebody who did what they say.

    Args:
        hint: What the hints of the finding must hold.
        source, args: The file that breaks, with a function ``f``; what it is called with.
        followed, followed_args: The file afterwards; what the caller now passes.
    """

    name: str
    code: str
    hint: str
    source: str
    followed: str
    args: str = "torch.ones(4),"
    followed_args: str = ""
