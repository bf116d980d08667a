"""The operations of `store.erasure`."""

import os
import re
import stat
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal
from unicodedata import combining, normalize

import msgspec
from msgspec import Meta

from memlog.eventlog.codec.hashing import sha256
from memlog.eventlog.errors import BadInput
from memlog.eventlog.fields import Chat
from memlog.eventlog.files.folders import check_store_exists
from memlog.eventlog.log.layout import CACHE, LOG, MODEL, WRITERS
from memlog.eventlog.log.reader import decode_entry, open_segment, read_lines, select_segments
from memlog.eventlog.log.streams import encode_name, escape_invalid_utf8
from memlog.eventlog.log.writer import Log
from memlog.eventlog.secrets.detection import list_key_kinds_in_line, mask_keys
from memlog.projector.sqlite import converting_errors
from memlog.projector.subjects.imports import Key
from memlog.query.request import ChatField
from memlog.service.engine.operation import OperationGroup, operation
from memlog.service.engine.requests import DryRun, ProgressField
from memlog.service.upkeep.forgetting import (
    ForgetReport,
    ScrubReport,
    Target,
    forget_events,
    forget_imported_events,
    scrub_store,
)
from memlog.service.upkeep.undoing import ImportUndo, undo_import


class SecretPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A place where the log seems to contain a key, without the key itself.

    kind: the kind of key. id: the id of the event, or the position of a line that is not an event.
    offset, line: the byte offset of the line in its segment, and its number from 1.
    """

    kind: str
    id: str
    stream: str
    segment: str
    offset: int
    line: int


def find_secrets_in_log(log: Path) -> Iterator[SecretPlace]:
    """Yield the place of each line that contains a key, once for each kind of key, in log order.

    This includes duplicates, lines that are not events, and forgotten lines that are not overwritten yet.
    """
    for segment in select_segments(log):
        with open_segment(segment) as fd:
            for line in read_lines(fd, tail_is_a_line=True):
                kinds = list_key_kinds_in_line(line.data or b"")
                entry = decode_entry(segment, line) if kinds else None
                if entry is not None:
                    for kind in kinds:
                        yield SecretPlace(
                            kind=kind,
                            id=mask_keys(entry.event_id),
                            stream=mask_keys(entry.segment.stream),
                            segment=entry.segment.name.filename,
                            offset=entry.line.offset,
                            line=entry.line.number,
                        )


_FORMS: tuple[Literal["NFC", "NFD"], ...] = ("NFC", "NFD")
_FOLDERS = (LOG, MODEL, CACHE, WRITERS)
_BLOCK = 4 * 1024 * 1024
_SQLITE = b"SQLite format 3\0"
_WAL = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
_OVERFLOW_HEAD = 4  # the number of the next page: https://www.sqlite.org/fileformat2.html#ovflpgs
_WAL_HEAD, _FRAME_HEAD = 32, 24  # https://www.sqlite.org/fileformat2.html#walformat


class Occurrence(msgspec.Struct, frozen=True):
    """A file of the store that contains the text, and the byte offset; None if it is in the file's name."""

    file: str
    offset: int | None


class Proof(msgspec.Struct):
    """The result of searching every byte of a store.

    left_out: links and special files below the store's folders, which were not read.
    git: each `.git` folder that may hold compressed versions of the store's files, which were not searched.
    """

    found: list[Occurrence]
    files: int
    bytes: int
    left_out: list[str]
    git: list[str]


def search_store_for_text(store: Path, text: str) -> Proof:
    """Search every file below `store`, and the names of files, for `text`.

    Finds the text as UTF-8, as JSON, and as JSON within JSON, with canonically equivalent letters, too; and
    its sha256, the key of cached vectors. Follows the links that memlog follows, such as a linked log. Skips
    files that are removed meanwhile.

    Raises:
        BadInput: the text is empty. OSError: a file cannot be read.
    """
    if not text:
        raise BadInput("the text must not be empty", hint="specify what to find: store.erasure.prove(TEXT)")
    forms, proof = _Forms.of(text), Proof([], 0, 0, [], _find_git_folders(store))
    names = {each for form in _FORMS for each in (normalize(form, text), encode_name(normalize(form, text)))}
    linked = {path for name in _FOLDERS if (path := store / name).is_symlink() and path.is_dir()}
    for path in (each for folder in (store, *sorted(linked)) for each in _list_paths_below(folder)):
        name = escape_invalid_utf8(path.relative_to(store))
        if any(form in name for form in {text, encode_name(text), *names}):
            proof.found.append(Occurrence(name, None))
        try:
            _search_file(path, name, forms, proof, follows=path in linked)
        except FileNotFoundError:
            continue
        except OSError as error:
            error.filename = path
            raise
    return proof


def _find_git_folders(store: Path) -> list[str]:
    here = store.resolve()
    # In a worktree or a submodule, .git is a file.
    candidates = (folder / ".git" for folder in (here / LOG, here, *here.parents))
    return [escape_invalid_utf8(path) for path in candidates if os.path.lexists(path)]


def _search_file(path: Path, name: str, forms: "_Forms", proof: Proof, *, follows: bool) -> None:
    status = path.stat() if follows else path.lstat()
    if stat.S_ISDIR(status.st_mode):
        return
    if not stat.S_ISREG(status.st_mode):
        proof.left_out.append(name)
        return
    with path.open("rb") as file:
        offsets = {found for blocks in _read_blocks(file) for found in _find_offsets(blocks, forms)}
    proof.files += 1
    proof.bytes += status.st_size
    proof.found += [Occurrence(name, offset) for offset in sorted(offsets)]


class _Forms(msgspec.Struct):
    """The bytes to search for, and the length of the longest match."""

    pattern: re.Pattern[bytes]
    longest: int

    @classmethod
    def of(cls, text: str) -> "_Forms":
        """Return a pattern for `text` and its hashes, plain or as JSON strings, in any canonical form."""
        letters = [_equivalent_forms(letter) for letter in _split_letters(text)]
        spelt = {tuple(_spellings(style, forms) for forms in letters) for style in _spelling_styles()}
        canonical = (text, *(normalize(form, text) for form in _FORMS))
        hashes = {sha256(each.encode(errors="surrogatepass")).digest() for each in canonical}
        longest = max(32, *(sum(max(map(len, piece)) for piece in pieces) for pieces in spelt))
        patterns = [
            b"".join(b"(?:%s)" % b"|".join(map(re.escape, piece)) for piece in pieces) for pieces in spelt
        ]
        return cls(
            re.compile(b"|".join([*sorted(patterns), *map(re.escape, sorted(hashes))]), re.DOTALL), longest
        )


def _split_letters(text: str) -> list[str]:
    """Return the composed characters of a text, each with its combining marks."""
    letters: list[str] = []
    for character in normalize("NFC", text):
        if letters and combining(character):
            letters[-1] += character
        else:
            letters.append(character)
    return letters


@cache
def _canonical_duplicates() -> dict[str, list[str]]:
    """Return, for each character, the others that NFC turns into it, such as the kelvin sign for K."""
    others: dict[str, list[str]] = {}
    for character in map(chr, (*range(0xD800), *range(0xE000, 0x10000))):
        if (composed := normalize("NFC", character)) != character:
            others.setdefault(composed, []).append(character)
    return others


def _equivalent_forms(letter: str) -> list[str]:
    """Return every canonically equivalent form of a letter."""
    parts = normalize("NFD", letter)
    between = (normalize("NFC", parts[:end]) + parts[end:] for end in range(1, len(parts)))
    return [*{letter, parts, *between, *_canonical_duplicates().get(letter, ())}]


_Style = Callable[[str], str]


def _spelling_styles() -> list[_Style]:
    """Return functions that spell a text as it is, as a JSON string, and as JSON within a JSON string.

    Each applies to a whole text, because mixed styles would match a run of backslashes in exponentially
    many ways.
    """
    # Imported here: most commands do not need it.
    import json

    def as_json(text: str) -> str:
        return json.dumps(text, ensure_ascii=False)[1:-1]

    def as_ascii_json(text: str) -> str:
        return json.dumps(text)[1:-1]

    def as_upper_json(text: str) -> str:
        return re.sub(r"(?<=\\u)[0-9a-f]{4}", lambda digits: digits[0].upper(), as_ascii_json(text))

    once: list[_Style] = [
        *(str, as_json, as_ascii_json, as_upper_json),
        *(lambda text, style=style: style(text).replace("/", "\\/") for style in (as_json, as_ascii_json)),
    ]
    return [*once, *(lambda text, style=style: as_json(style(text)) for style in once)]


def _spellings(style: _Style, forms: list[str]) -> tuple[bytes, ...]:
    spelt = {style(form).encode(errors="surrogatepass") for form in forms}
    return tuple(sorted(spelt, key=lambda each: (-len(each), each)))


def _list_paths_below(folder: Path) -> Iterator[Path]:
    """Yield every path below a folder without following links."""

    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise OSError(error.errno, error.strerror, error.filename)

    for parent, folders, files in os.walk(folder, onerror=refuse):
        for name in sorted([*folders, *files]):
            yield Path(parent) / name


_Blocks = Iterator[tuple[int, bytes]]
"""The offset of each block in its file, and its bytes."""


def _read_blocks(file: BinaryIO) -> Iterator[_Blocks]:
    """Yield the blocks of a file; for SQLite files, again without the page numbers that split long texts."""
    head = file.read(100)
    yield _split_blocks(file, 0, _BLOCK, 0)
    if head.startswith(_SQLITE):
        size = int.from_bytes(head[16:18], "big")
        yield _split_blocks(file, 0, 65536 if size == 1 else size, _OVERFLOW_HEAD)
    elif head.startswith(_WAL):
        size = int.from_bytes(head[8:12], "big")
        yield _split_blocks(file, _WAL_HEAD, size + _FRAME_HEAD, _FRAME_HEAD + _OVERFLOW_HEAD)


def _split_blocks(file: BinaryIO, first: int, size: int, head: int) -> _Blocks:
    """Yield each block of `size` bytes from `first` on, without its first `head` bytes, and its offset."""
    offset = file.seek(first)
    while block := file.read(size):
        yield offset + head, block[head:]
        offset += len(block)


def _find_offsets(blocks: _Blocks, forms: _Forms) -> Iterator[int]:
    kept = forms.longest - 1
    before = b""
    for offset, block in blocks:
        data = before + block
        found = forms.pattern.search(data)
        while found is not None:
            yield max(0, offset - len(before) + found.start())
            found = forms.pattern.search(data, found.start() + 1)
        before = data[max(0, len(data) - kept) :]


def _check_forget(given: Any) -> None:  # noqa: ANN401 - the request
    if sum(each is not None for each in (given.event_id, given.chat, given.memory, given.match)) != 1:
        raise BadInput(
            "exactly one of ID, chat, memory and match is required", hint="specify one: it selects the events"
        )
    if given.stream is not None and given.event_id is None:
        raise BadInput("a stream was given without an ID", hint="also specify the ID of an event in it")


class Erasure(OperationGroup):
    """Forgets events, overwrites their bytes, and searches for remains."""

    @operation("erase", check=_check_forget)
    def forget(
        self,
        event_id: Annotated[str | None, Meta(title="ID"), "The event."] = None,
        *,
        stream: Annotated[str | None, "The stream of the event, where several streams have its id."] = None,
        chat: Annotated[
            ChatField | None,
            "All of this conversation: its streams, its facts, and every memory that ever belonged to it.",
        ] = None,
        memory: Annotated[str | None, Meta(title="ID"), "Every event that touched this memory."] = None,
        match: Annotated[
            str | None,
            Meta(title="REGEX"),
            "Every event with a text that this pattern matches (Python's re; at most 5 s an event).",
        ] = None,
        reason: Annotated[
            str | None, "Why, for readers of the log. It stays there permanently; keys in it are masked."
        ] = None,
        dry_run: DryRun = False,
    ) -> ForgetReport:
        """Forget events: one event by its id, all events of a chat or memory, or all that match a pattern.

        Redactions are appended and synced, whatever the durability. The events leave the read model
        immediately, and no line with their ids counts again, wherever and whenever it arrives. Their bytes
        stay in the log until a scrub overwrites them. The id of a line without an event is its position, as
        the quarantine shows it: 2026-02-24.jsonl:1042.

        Raises:
            BadInput: not exactly one of id, chat, memory and match is given; several streams have the id; the
                pattern is invalid.
            NotFound: nothing with this name was ever in the store.
            Busy, LogError: as `Store.append`. Some events may be forgotten; it is safe to try again.
        """
        check_store_exists(self._engine.path)
        engine = self._engine
        try:
            target = Target(event_id, stream, None if chat is None else Chat.of(chat), memory, match)
            return forget_events(
                self._open_synced_log(), engine.read_model, target, reason=reason, dry_run=dry_run
            )
        finally:
            engine.read_model.questions.drop_all_vectors()

    @operation("erase")
    def undo_import(
        self,
        run: Annotated[
            str, Meta(title="RUN"), "The id of the import, as its report and the list of imports show it."
        ],
        *,
        anyway: Annotated[bool, "Undo it even if later imports of other sources met its events."] = False,
        erase: Annotated[
            bool, "Also forget its events: they cannot be imported again, and a scrub overwrites them."
        ] = False,
        dry_run: DryRun = False,
    ) -> ImportUndo:
        """Undo an import: its events, and what was derived from them, no longer count.

        Messages and memories that people or agents have changed since then stay. A later import brings back
        exactly the events that it meets again, unless they were erased.

        Raises:
            NotFound: there is no such import.
            BadInput: it was undone before, or later imports of other sources met some of its events.
            Busy, LogError: as `Store.append`.
        """
        check_store_exists(self._engine.path)
        engine = self._engine

        def forget(events: set[Key]) -> None:
            forget_imported_events(self._open_synced_log(), engine.read_model, events)

        try:
            return undo_import(engine, run, anyway=anyway, dry_run=dry_run, forget=forget if erase else None)
        finally:
            engine.read_model.questions.drop_all_vectors()

    def _open_synced_log(self) -> Log:
        """Return the log, always with fsync: forgotten events must not come back after a power cut."""
        engine = self._engine
        return Log(
            engine.path,
            lock_timeout=engine.lock_timeout,
            redact=engine.redact,
            on_stored=engine.on_stored,
        )

    @operation("erase")
    def scrub(
        self,
        *,
        dry_run: DryRun = False,
        progress: ProgressField = None,
    ) -> ScrubReport:
        """Overwrite in the log the bytes of all forgotten events, and build a new read model without them.

        Offsets, files and the number of lines stay as they are. Other read models are removed, and the cache
        keeps no free pages. After a kill or an error, the next scrub finishes the work.

        Raises:
            Busy: another process held a segment, the seals or the read model for too long.
            LogError, DatabaseError: a file could not be written. Forgotten bytes may still be in it.
        """
        check_store_exists(self._engine.path)
        read_model = self._engine.reads.maintenance
        with read_model.mutex, converting_errors("the read model"):
            done = scrub_store(read_model, self._engine.lock_timeout, progress, dry_run=dry_run)
        # An open connection would keep the bytes of a removed generation on disk.
        self._engine.reads.close()
        return done

    @operation("read")
    def prove(self, text: Annotated[str, "The text."]) -> Proof:
        """Search every byte of the store for `text`, and list each file and offset where it occurs.

        Raises:
            BadInput: the text is empty. LogError: a file cannot be read.
        """
        check_store_exists(self._engine.path)
        # Closing a file drops the POSIX locks that SQLite has on it in the same process.
        with self._engine.reads.holding_all_closed():
            self._engine.known_ids.close()
            return search_store_for_text(self._engine.path, text)

    @operation("read")
    def secrets(self) -> list[SecretPlace]:
        """List the lines of the log that seem to contain a key, with its kind and place, but never the key.

        Forgotten events are included until a scrub overwrites them.
        """
        check_store_exists(self._engine.path)
        return list(find_secrets_in_log(self._engine.log_path))
