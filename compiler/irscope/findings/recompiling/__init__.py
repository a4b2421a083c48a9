"""What is known and said about a recompilation: the calls that compiled a function, their arguments, what to do."""
