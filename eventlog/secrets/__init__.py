"""Detection of keys and passwords in texts, and the gate for texts that leave the process."""
