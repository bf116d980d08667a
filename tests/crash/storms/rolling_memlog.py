"""The command line with segments that are full after 6 kB, so that they roll all the time."""

from memlog.cli.main import main
from memlog.eventlog import rotation

rotation.SEGMENT_BYTES = 6000

if __name__ == "__main__":
    main()
