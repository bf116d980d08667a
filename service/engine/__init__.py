"""The resources of operations: the log, the read model, local models, and requests to providers."""
