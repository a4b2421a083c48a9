"""What captures for ``torch.export``; other pipelines begin with what is exported here."""
