"""What captures for TorchScript: traced and scripted programs, and those that the script makes itself."""
