"""What runs inside the script's process: the script itself, as ``__main__``, under capture."""
