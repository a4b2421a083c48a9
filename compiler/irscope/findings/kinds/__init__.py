"""One module for each kind of finding: detection, words, severity."""
