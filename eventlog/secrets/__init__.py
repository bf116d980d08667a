"""Detection of keys and passwords in texts, and the gate for text that leaves the process."""
