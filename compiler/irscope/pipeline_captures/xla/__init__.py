"""What captures for PyTorch/XLA: the programs that the script runs on its device, and XLA's texts of them."""
