"""One module per kind of finding: how it is detected, its words, its severity."""
