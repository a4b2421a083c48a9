"""Trials: a changed program runs beside the original, and what both compute is compared and measured."""
