"""A process with limits: libraries read files there, and patterns that memlog did not write search texts."""
