"""Everything private of PyTorch: hooks, frames, versions."""
