"""The command line, a thin layer: a command is its options, one call, and a print of the answer."""
