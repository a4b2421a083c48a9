"""Watches what leaves the compiled graphs of a script, step by step, and runs the last steps again where it went wrong."""
