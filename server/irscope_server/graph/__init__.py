"""The data of the graph panel."""
