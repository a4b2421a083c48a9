"""What needs another compiler than torch: run by path in the interpreter that has it."""
