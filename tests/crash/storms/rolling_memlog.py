"""The command line with segments that are full after 6 kB, so that they roll all the time."""

from memlog.cli.process.main import main
from memlog.eventlog.log import rotation

rotation.SEGMENT_BYTES = 6000

if __name__ == "__main__":
    main()
