"""What captures for the pipeline ``dynamo``: whether the script's backend was called, and what it returned."""
