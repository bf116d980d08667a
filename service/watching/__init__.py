"""The watch: keeps the read model up to the log, and documents up to their files."""
