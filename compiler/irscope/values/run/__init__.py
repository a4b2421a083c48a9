"""Running a captured graph and its compiled code on real inputs, and reading back what was kept."""
