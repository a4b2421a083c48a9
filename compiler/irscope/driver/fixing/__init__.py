"""Fixes that are tried: a change of a script is run beside the original, and what both compute is compared."""
