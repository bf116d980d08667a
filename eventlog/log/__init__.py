"""The log: streams and segments, appending and reading, and records of how far it was read."""
