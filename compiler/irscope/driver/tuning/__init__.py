"""What pays: candidates are trials of a script, checked and measured in turns with it."""
