"""The rules, one a module: each has an attribute ``RULE``."""
