"""Breaks whose options no edit can apply, each with the file of somebody who did what a hint says."""

from advice_followed import symbols, world
from advice_followed.table import Followed

__all__ = ["ENTRIES", "Followed"]

ENTRIES = (*symbols.ENTRIES, *world.ENTRIES)
