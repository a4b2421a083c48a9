"""Readers of IR texts: graphs, nodes, kernels, guards, symbols, phases, assembly, MLIR, line tables, costs."""
