"""What the operating system says about processes, and how they are ended."""
