"""The log: streams, segments, appending, reading, and what has been seen of it."""
