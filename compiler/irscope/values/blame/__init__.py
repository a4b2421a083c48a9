"""Finding the pass, decomposition or node that made a result differ."""
