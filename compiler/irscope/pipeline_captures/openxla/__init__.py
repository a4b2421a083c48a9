"""What captures for OpenXLA: the lowering through torchax and JAX, and the texts that XLA dumps."""
