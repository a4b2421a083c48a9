"""The first of `PYTHONPATH` in the interpreters that a script under capture starts."""
