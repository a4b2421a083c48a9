"""The run store: a SQLite file with runs, compiles, stages, findings and kernels."""
