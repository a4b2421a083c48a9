"""Fixes that are tried: the candidates of each finding, in chains and together, and how they are written."""
