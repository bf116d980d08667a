"""Searches every byte of a store for a text."""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from memlog.eventlog.errors import BadInput
from memlog.eventlog.hashing import sha256
from memlog.eventlog.layout import LOG
from memlog.eventlog.streams import encoded_name, shown

_BLOCK = 4 * 1024 * 1024
_SQLITE = b"SQLite format 3\0"
_WAL = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
_OVERFLOW_HEAD = 4  # the number of the next page: https://www.sqlite.org/fileformat2.html#ovflpgs
_WAL_HEAD, _FRAME_HEAD = 32, 24  # https://www.sqlite.org/fileformat2.html#walformat


class Occurrence(msgspec.Struct, frozen=True):
    """A file below the store and the byte offset of the text in it; None if its name holds the text."""

    file: str
    offset: int | None


class Proof(msgspec.Struct):
    """The result of a search of every byte of a store.

    left_out: links and special files, which were not read.
    git: each `.git` that may hold versions of the store, in compressed objects, which were not searched.
    """

    found: list[Occurrence]
    files: int
    bytes: int
    left_out: list[str]
    git: list[str]


def prove(store: Path, text: str) -> Proof:
    """Search every file below `store`, and the names of files, for `text`.

    Finds it as UTF-8, as JSON may escape it, and as JSON within JSON, with letters as given; and
    its sha256, the key of vectors in the cache. Files that are removed meanwhile are skipped.

    Raises:
        BadInput: the text is empty. OSError: a file cannot be read.
    """
    if not text:
        raise BadInput("the text is empty", hint="memlog scrub --prove TEXT")
    forms, proof = _forms(text), Proof([], 0, 0, [], _repositories(store))
    names = {text, encoded_name(text)}
    for path in _below(store):
        name = shown(path.relative_to(store))
        if any(form in name for form in names):
            proof.found.append(Occurrence(name, None))
        try:
            _search(path, name, forms, proof)
        except FileNotFoundError:
            continue
        except OSError as error:
            error.filename = path
            raise
    return proof


def _repositories(store: Path) -> list[str]:
    here = store.resolve()
    # In a worktree or a submodule it is a file.
    candidates = (folder / ".git" for folder in (here / LOG, here, *here.parents))
    return [shown(path) for path in candidates if os.path.lexists(path)]


def _search(path: Path, name: str, forms: list[bytes], proof: Proof) -> None:
    status = path.lstat()
    if stat.S_ISDIR(status.st_mode):
        return
    if not stat.S_ISREG(status.st_mode):
        proof.left_out.append(name)
        return
    with path.open("rb") as file:
        offsets = {found for blocks in _views(file) for found in _found_in(blocks, forms)}
    proof.files += 1
    proof.bytes += status.st_size
    proof.found += [Occurrence(name, offset) for offset in sorted(offsets)]


def _forms(text: str) -> list[bytes]:
    """The bytes to search for: the text, its JSON strings, JSON strings of those, and its hash."""
    # Imported here: most commands do not need it.
    import json

    plain = json.dumps(text, ensure_ascii=False)[1:-1]
    escaped = json.dumps(text)[1:-1]
    upper = re.sub(r"(?<=\\u)[0-9a-f]{4}", lambda digits: digits[0].upper(), escaped)
    once = {text, plain, escaped, upper, plain.replace("/", "\\/"), escaped.replace("/", "\\/")}
    twice = {json.dumps(form, ensure_ascii=False)[1:-1] for form in once}
    spelt = {form.encode(errors="surrogatepass") for form in once | twice}
    return sorted(spelt | {sha256(text.encode(errors="surrogatepass")).digest()})


def _below(folder: Path) -> Iterator[Path]:
    """Every path below a folder; no link is followed."""

    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise OSError(error.errno, error.strerror, error.filename)

    for parent, folders, files in os.walk(folder, onerror=refuse):
        for name in sorted([*folders, *files]):
            yield Path(parent) / name


_Blocks = Iterator[tuple[int, bytes]]
"""Where each block begins in its file, and its bytes."""


def _views(file: BinaryIO) -> Iterator[_Blocks]:
    """The bytes of a file; of SQLite's also the pages without the numbers that may split a long text."""
    head = file.read(100)
    yield _blocks(file, 0, _BLOCK, 0)
    if head.startswith(_SQLITE):
        size = int.from_bytes(head[16:18], "big")
        yield _blocks(file, 0, 65536 if size == 1 else size, _OVERFLOW_HEAD)
    elif head.startswith(_WAL):
        size = int.from_bytes(head[8:12], "big")
        yield _blocks(file, _WAL_HEAD, size + _FRAME_HEAD, _FRAME_HEAD + _OVERFLOW_HEAD)


def _blocks(file: BinaryIO, first: int, size: int, head: int) -> _Blocks:
    """Blocks of `size` bytes from the offset `first` on, each without its first `head` bytes."""
    offset = file.seek(first)
    while block := file.read(size):
        yield offset + head, block[head:]
        offset += len(block)


def _found_in(blocks: _Blocks, forms: list[bytes]) -> Iterator[int]:
    """The offsets at which one of `forms` begins."""
    kept = max(map(len, forms)) - 1
    before = b""
    for offset, block in blocks:
        data = before + block
        for form in forms:
            place = data.find(form)
            while place >= 0:
                yield max(0, offset - len(before) + place)
                place = data.find(form, place + 1)
        before = data[max(0, len(data) - kept) :]
