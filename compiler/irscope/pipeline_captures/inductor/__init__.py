"""What captures for Inductor: deep lane, passes, fusion, memory plan, kernels, Triton stages, value runs."""
