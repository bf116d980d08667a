"""What kind of file system a folder is on, as Linux tells it."""

import re
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")

_OVER_A_NETWORK = re.compile(
    r"nfs\d?|cifs|smb\w*|9p|afs|ceph|glusterfs|lustre|gpfs|beegfs|ocfs2|gfs2|davfs|virtiofs|fuse(\..*)?"
)


def kind_of(folder: Path, mounts: str) -> str | None:
    """The kind of file system (`ext4`) that `folder` is on; None where it cannot be told.

    mounts: the text of /proc/self/mountinfo.
    """
    path = folder.resolve()
    best, kind = -1, None
    for line in mounts.splitlines():
        before, dash, after = line.partition(" - ")
        fields = before.split(" ")
        if not dash or len(fields) < 5:
            continue
        point = Path(_unescaped(fields[4]))
        # Of two on one folder the later one hides the earlier.
        if path.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), after.split(" ")[0]
    return kind


def is_over_a_network(kind: str) -> bool:
    """Whether locks and syncs may not mean on it what they mean on a disk; of FUSE nobody knows."""
    return _OVER_A_NETWORK.fullmatch(kind) is not None


def _unescaped(point: str) -> str:
    r"""A mount point has a space as `\040`."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), point)
