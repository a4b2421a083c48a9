"""A run as one page of HTML that needs nothing else, to attach to an issue."""
