"""What is written from the Python sources: one module for each kind of output."""
