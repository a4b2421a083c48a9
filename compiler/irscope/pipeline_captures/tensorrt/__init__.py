"""What captures for Torch-TensorRT: a dry run of its partitioner."""
