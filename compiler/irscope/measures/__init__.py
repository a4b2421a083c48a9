"""Numbers with a unit on paths: the tree that shows them, and the model that divides a kernel's."""
