"""The symbolic trace as the debugger steps through it."""
