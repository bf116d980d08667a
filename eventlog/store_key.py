"""The key of a store, and hashes that only its holder can compare with a text.

A hash in the log outlives the text, and without a key anybody could try texts against it. The key stays in
its copy of the store. If it is lost, a new one is made, and earlier hashes match nothing.
"""

import hashlib
import os
import re
from pathlib import Path

from memlog.eventlog import disk, locks
from memlog.eventlog.errors import LogError
from memlog.eventlog.file_io import closing, open_regular, overwrite_all
from memlog.eventlog.layout import STORE_KEY

_BYTES = 32
_LINE = re.compile(rb"[0-9a-f]{%d}\n" % (2 * _BYTES))
_HASH_BYTES = 16


def key_of(store: Path) -> bytes:
    """Read the key of the store, or make it.

    Raises Busy, and LogError if it can be neither read nor made.
    """
    try:
        return _known(store / STORE_KEY) or _made(store)
    except OSError as error:
        raise LogError(f"{STORE_KEY}: {error.strerror or error}") from error


def keyed_hash(key: bytes, text: str) -> str:
    """Hash `text`, in which a run of white space counts as one space, to 128 bits in hex."""
    folded = " ".join(text.split()).encode()
    return hashlib.blake2b(folded, key=key, digest_size=_HASH_BYTES).hexdigest()


def _known(path: Path) -> bytes | None:
    """Read the key in a file; None without a file, or without a whole key in it: its writer was killed."""
    try:
        with closing(open_regular(path, disk.READ)) as fd:
            line = disk.read(fd, 2 * _BYTES + 2, 0)
    except FileNotFoundError:
        return None
    return bytes.fromhex(line.decode()) if _LINE.fullmatch(line) else None


def _made(store: Path) -> bytes:
    path = store / STORE_KEY
    with closing(disk.open(store, disk.FOLDER, follow=True)) as folder:
        locks.acquire(folder, store.name, locks.TIMEOUT)
        # Another process may have been faster.
        if (known := _known(path)) is not None:
            return known
        key = os.urandom(_BYTES)
        with closing(open_regular(path, disk.WRITE | disk.CREATE)) as fd:
            overwrite_all(fd, f"{key.hex()}\n".encode(), 0)
            disk.sync_data(fd)
        return key
