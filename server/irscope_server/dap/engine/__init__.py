"""The debugger's engine: a stored run, its stages and places. It does not know the protocol."""
