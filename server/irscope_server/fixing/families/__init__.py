"""One module for each family of fixes; each has an attribute ``FAMILY``."""
