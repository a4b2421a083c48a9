"""Pictures of graphs for the command line: folded by module, as DOT, and rendered by Graphviz."""
