"""The debugger's engine: a stored run, its stages and places. It knows nothing of the protocol."""
