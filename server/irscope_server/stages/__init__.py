"""Language features in the read-only documents of stages."""
