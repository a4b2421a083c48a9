"""irscope: what torch.compile did to your code.

This package runs in the user's interpreter, so it needs nothing but the standard library and torch,
and importing it imports neither torch nor anything slow.
"""

__version__ = "0.1.0"
