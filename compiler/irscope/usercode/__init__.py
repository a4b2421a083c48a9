"""The user's code: source text, ranges, syntax trees, notebooks, and which files are the user's."""
