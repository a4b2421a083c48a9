"""Measured time: what a trace of PyTorch's profiler says, and whose time it is."""
