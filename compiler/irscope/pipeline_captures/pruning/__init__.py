"""What captures for the pipeline ``pruning``: zeros and masks, beside the stages of Inductor."""
