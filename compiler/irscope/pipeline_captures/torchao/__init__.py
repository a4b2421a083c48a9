"""What captures for the pipeline ``torchao``: quantization, beside the stages of Inductor."""
