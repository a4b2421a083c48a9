"""Runs of scripts: plans, workers, results, outcomes."""
