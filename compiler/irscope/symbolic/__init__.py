"""The symbolic trace of a compile: Dynamo walking over the user's instructions."""
