"""Comparing compiled code with its graph, node by node."""
