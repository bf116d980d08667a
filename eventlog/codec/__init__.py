"""Checks events, encodes them as lines of the log, decodes such lines, and upcasts older and foreign ones."""
