"""What PyTorch says while it compiles, read as it happens: the records of its trace, its messages, the stack, and Dynamo's walk."""
