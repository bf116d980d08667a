"""The log: its streams and segments, appending, reading, and records of how far it was read."""
