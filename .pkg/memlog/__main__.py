"""Runs the command line: `python -m memlog`."""

from memlog.cli.process.program import main

if __name__ == "__main__":
    main()
