"""What captures for OpenVINO: the converted model, its passes, and what the plugin runs."""
