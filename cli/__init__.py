"""The command line, a thin layer: each command declares options, makes one call, and prints the answer."""
