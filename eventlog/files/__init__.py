"""The calls of the system: files, folders, locks, forks."""
