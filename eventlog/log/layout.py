"""All paths in a store, relative to its folder, and the base class of records about segments."""

from pathlib import Path

import msgspec

from memlog.eventlog.files import disk

LOG = "log"
SETTINGS = "memlog.toml"
WRITERS = "writers"  # the names under which this copy appends; see memlog.eventlog.integrity.copy_identity
WATERMARKS = "watermarks.jsonl"  # how far each segment was read; see memlog.eventlog.log.watermarks
STORE_KEY = "store.key"  # for keyed hashes in the log; see memlog.eventlog.secrets.outgoing

PROJECTOR_LOCK = "projector.lock"  # held while the read model is written
SCRUB_LOCK = "scrub.lock"  # held while bytes of the log are overwritten
EXTRACT_LOCK = "extract.lock"  # held while memories are extracted from messages
JOBS_LOCK = "jobs.lock"  # held while a job runs
IMPORT_LOCK = "import.lock"  # held during an import
WATCH_LOCK = "watch.lock"  # held while a process watches the store

MODEL = "model"
CURRENT = "model/CURRENT"  # names the live generation
BUILD_LOCK = "model/build.lock"  # held during a build, which may remove other files in model/
CORE_VIEW = "model/core_memory.json"
CORE_VIEW_WRITTEN = "model/.core_memory.json"
CORE_VIEW_PENDING = "model/.core_memory.pending.json"

CACHE = "cache"
EMBEDDINGS = "cache/embeddings.db"  # created with the first vector
PROVIDERS = "cache/providers.json"  # recent failures; see memlog.service.engine.http_client
SOURCE_RECORDS = "cache/documents"

GITIGNORE = ".gitignore"
GITATTRIBUTES = ".gitattributes"

LOCKS = (PROJECTOR_LOCK, SCRUB_LOCK, WATCH_LOCK, EXTRACT_LOCK, JOBS_LOCK, IMPORT_LOCK)
"""Lock files, which stay after their locks are released."""

PRIVATE = (LOG, MODEL, CACHE, WRITERS, STORE_KEY, *LOCKS)
"""Paths that, with everything below them, only the owner may read."""

DISPOSABLE = (MODEL, CACHE, WRITERS, WATERMARKS, STORE_KEY, *LOCKS)
"""Files and folders that memlog recreates if they are missing."""

TOP = (*PRIVATE, SETTINGS, WATERMARKS, GITIGNORE, GITATTRIBUTES)
"""The names of everything that memlog creates directly in a store's folder."""

# Below log/:
CONVERSATIONS = "conversations"
FORMAT = "FORMAT"  # holds the format number of the log; see memlog.eventlog.log.log_format
SEALS = "seals.jsonl"  # written by an older memlog; see seals_file

WRITER = "[a-z][a-z2-7]{5}"
"""A pattern for writer names, which are part of the writers' file names."""
_WRITER_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz234567")


class SegmentRecord(msgspec.Struct, frozen=True):
    """A record about a segment, such as its seal."""

    stream: str
    segment: str

    @property
    def name(self) -> tuple[str, str]:
        """The stream and the file name of the segment."""
        return self.stream, self.segment


def is_writer_name(name: str) -> bool:
    """Whether `name` is a valid writer name."""
    # Every append calls this: compiling the pattern would dominate its time.
    return len(name) == 6 and not name[0].isdigit() and _WRITER_CHARACTERS.issuperset(name)


def name_of_seals_file(writer: str) -> str:
    """Return the name of a writer's seals file in `log/`."""
    return f"seals.{writer}.jsonl" if writer else SEALS


def is_seals_file(name: str) -> bool:
    """Whether a file in `log/` with this name holds seals."""
    writer = name.removeprefix("seals.").removesuffix(".jsonl")
    return name == SEALS or (is_writer_name(writer) and name == name_of_seals_file(writer))


def list_seals_files(log: Path) -> list[str]:
    """Return the names of the seals files in `log`, sorted; [] if there is no log."""
    try:
        with disk.scan_folder(log) as entries:
            return sorted(entry.name for entry in entries if is_seals_file(entry.name))
    except (FileNotFoundError, NotADirectoryError):
        return []
