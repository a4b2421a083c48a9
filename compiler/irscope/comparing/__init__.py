"""What changed: between two graphs, and between two runs."""
