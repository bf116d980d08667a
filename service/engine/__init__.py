"""What operations use: the log, the read model, embedding models, and requests to providers."""
