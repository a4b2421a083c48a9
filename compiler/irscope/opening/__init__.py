"""Traces from elsewhere: logs that PyTorch wrote where no irscope was, as runs of the store."""
