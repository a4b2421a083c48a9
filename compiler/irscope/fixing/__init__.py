"""Changes that remove findings: rules that propose them, and the edits that make them."""
