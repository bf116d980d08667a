"""System calls: files, folders, locks, forks."""
