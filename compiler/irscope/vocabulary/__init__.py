"""Words and numbers that every room shares."""
