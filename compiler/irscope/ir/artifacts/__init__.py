"""Compiled artifacts as data: what is in one, and whether it fits here.  Nothing is unpickled or executed."""
