"""Documents: folders of files that are read into the log."""
