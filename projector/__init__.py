"""Turns the log into the read model: schema, checkpoints, replay, handlers, chunks, vectors, generations."""
