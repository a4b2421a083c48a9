"""What captures for ONNX: the exported model, and ONNX Runtime's sessions."""
