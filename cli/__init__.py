"""The command line: thin. A command is its options, one call, and a print."""
