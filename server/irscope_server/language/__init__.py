"""Language features in source files: diagnostics, hovers, lenses, hints, fixes."""
