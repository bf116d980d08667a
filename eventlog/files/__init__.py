"""System calls: files, folders, locks and forks."""
