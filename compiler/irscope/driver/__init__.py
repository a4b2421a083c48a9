"""Starts a run in its own process, watches it, enforces limits and names the outcome."""
