"""Turns the log into the read model: schema, checkpoints, replay, handlers, passages, vectors and more."""
