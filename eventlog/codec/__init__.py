"""Lines of the log: checks, encodes, decodes and upcasts events."""
