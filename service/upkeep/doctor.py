"""Diagnoses a store and this machine, with a remedy for each problem."""

import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Literal

import msgspec

from memlog.eventlog.errors import (
    DatabaseError,
    EmbeddingError,
    LogError,
    MemlogError,
    convert_system_error,
)
from memlog.eventlog.files import disk
from memlog.eventlog.files.file_io import is_line_start
from memlog.eventlog.files.folders import check_store_exists
from memlog.eventlog.files.locks import find_permission_errors, remove_or_rename_unusable
from memlog.eventlog.integrity.seal_file import read_seals
from memlog.eventlog.integrity.seal_format import Seals
from memlog.eventlog.integrity.seal_losses import (
    LOSS_REMEDY,
    Loss,
    Ownership,
    find_arriving_segments,
    find_grown_segments,
    find_losses,
)
from memlog.eventlog.log import layout, log_format
from memlog.eventlog.log.reader import open_segment
from memlog.eventlog.log.streams import Segment, escape_invalid_utf8, group_segments_by_writer, list_segments
from memlog.eventlog.log.tail import advise_on_unread_file, why_not_read
from memlog.eventlog.log.watermarks import OpenLoss, ReturnedText, Watermarks
from memlog.eventlog.sections import LanguageModelProvider, People
from memlog.projector import catchup
from memlog.projector.embedding.cache import check_cache
from memlog.projector.embedding.models import Embedder, is_bundled_model
from memlog.projector.limits import LONGEST_LIST, LONGEST_NAMES, LONGEST_STRUCTURED
from memlog.projector.sqlite import (
    Connection,
    choose_binding,
    converting_errors,
    count_rows,
    describe_binding,
    remove_database,
    why_no_vectors,
)
from memlog.query.conflicts import count_open_conflicts
from memlog.query.context.background import count_passages_not_in_english
from memlog.query.context.scope import chats_by_name, choose_automatic_scope, nameless_messenger_chats
from memlog.query.provenance import Conflict, conflicting_lines, count_plain_texts
from memlog.service.engine.create import find_notes_beside
from memlog.service.engine.embedding_models import EmbeddingModel
from memlog.service.engine.read_model import ReadModel
from memlog.service.llm.model import LanguageModel
from memlog.service.retrieval.search import create_reranker

State = Literal["ok", "warning", "problem", "fixed"]


class Finding(msgspec.Struct, frozen=True):
    """The result of one check.

    state: a `warning` is tolerable; a `problem` impairs memlog.
    remedy: what a person can do; "" if nothing is needed.
    """

    check: str
    state: State
    finding: str
    remedy: str = ""


def findings_or_ok(check: str, findings: Iterable[Finding], message: str) -> list[Finding]:
    """Return `findings` as a list; if it is empty, a single "ok" finding for `check` with `message`."""
    return [*findings] or [Finding(check, "ok", message)]


def format_count_with_words(count: int, one: str, many: str) -> str:
    """Format a count with the words that agree with it: `1 segment is`, `2 segments are`."""
    return f"{count:,} {one if count == 1 else many}"


INSTALL = "pip install '.[multilingual]' in a checkout of memlog"
_FEW, _PART = 5, 0.1
"""The minimum number and share of non-English texts for which the multilingual model is worth its 90 MB."""


def find_error_raised_by(works: Callable[[], object]) -> MemlogError | None:
    """Return the memlog error that `works` raises, or None if it succeeds."""
    try:
        works()
    except MemlogError as error:
        return error
    return None


def ask_embedder(embedder: Embedder) -> MemlogError | None:
    """Let a model embed a short text; return its error, or None if it works."""
    return find_error_raised_by(lambda: embedder.embed(["Does it answer?"], "query"))


def _finding_from_error(
    check: str, error: MemlogError | None, message: str, state: State = "warning"
) -> Finding:
    """Return a finding with an error and its hint; "ok" with `message` if there is no error."""
    return (
        Finding(check, "ok", message) if error is None else Finding(check, state, error.message, error.hint)
    )


def examine_models(read_model: ReadModel, language_model: LanguageModelProvider | None) -> list[Finding]:
    """Check the embedding models, the reranker and the language model, if any."""
    return [
        _check_model(read_model),
        *_check_multilingual_model(read_model),
        *_check_reranker(read_model),
        *_check_language_model(read_model, language_model),
    ]


def _check_model(read_model: ReadModel) -> Finding:
    try:
        embedder = read_model.model.load_embedder("once")
    except EmbeddingError as error:
        if read_model.model.is_turned_off:
            return Finding("model", "ok", error.message)
        return Finding(
            "model", "warning", error.message, error.hint or "use a folder with a model: model=FOLDER"
        )
    return _finding_from_error("model", ask_embedder(embedder) if embedder.is_remote else None, embedder.id)


def why_multilingual_is_needed(db: Connection, model: EmbeddingModel) -> str | None:
    """Return a message if many texts have no vector without the multilingual model; otherwise None."""
    known = model.find_known_model()
    if model.multilingual is not None or known is None or not is_bundled_model(known):
        return None
    foreign, every = count_passages_not_in_english(db)
    if foreign < max(_FEW, _PART * every):
        return None
    return f"{foreign} of {every} texts are not in English, and only words find them: {INSTALL}"


def _check_multilingual_model(read_model: ReadModel) -> list[Finding]:
    """Check the multilingual model; return [] if it is not needed."""
    embedder = read_model.model.multilingual
    if embedder is not None:
        return [_finding_from_error("multilingual model", ask_embedder(embedder), embedder.id)]
    projector = read_model.projector
    try:
        if (
            projector.generations.find_live_file() is None
            or projector.why_live_generation_unusable() is not None
        ):
            return []
        with converting_errors("the read model"):
            found = why_multilingual_is_needed(projector.connect_to_live(), read_model.model)
    except (DatabaseError, OSError):
        return []  # other checks report this
    return [] if found is None else [Finding("multilingual model", "warning", found, INSTALL)]


def _check_language_model(read_model: ReadModel, provider: LanguageModelProvider | None) -> list[Finding]:
    """Send the language model a minimal request; return [] if no model is configured."""
    if provider is None:
        return []
    model = LanguageModel(provider, read_model.path)
    error = find_error_raised_by(
        lambda: model.request_answer_once("Answer with {}", "{}", {"type": "object"})
    )
    return [_finding_from_error("language model", error, f"{provider.name} answers")]


def _check_reranker(read_model: ReadModel) -> list[Finding]:
    """Send the reranker one request; return [] if none is configured."""
    rerank = create_reranker(read_model, lambda _: True, has_key=False)
    if rerank is None:
        return []
    texts = ["It does.", "It does not."]
    error = find_error_raised_by(lambda: rerank.rank("Does it answer?", texts, though_it_rests=True))
    return [_finding_from_error("rerank", error, "it answers")]


def examine_log(log: Path) -> list[Finding]:
    """Check the tails, seals and names of all segments, without decoding their lines.

    Raises:
        OSError: the log cannot be read.
    """
    segments, strangers = list_segments(log)
    seals = read_seals(log)
    sealed = format_count_with_words(len(seals.last), "segment is sealed", "segments are sealed")
    unread = (
        Finding("unread files", "problem", why_not_read(log, path), advise_on_unread_file(log, path))
        for path in strangers
    )
    return [
        _check_log_format(log),
        *findings_or_ok("tail", _check_tails(segments), "every segment ends with a newline"),
        *findings_or_ok("seals", _check_seals(log, segments, seals), sealed),
        *findings_or_ok(
            "days", _check_segment_dates(segments), "the days of each writer's segments follow each other"
        ),
        *findings_or_ok("unread files", unread, "everything below log/ is read"),
    ]


def _check_log_format(log: Path) -> Finding:
    try:
        has_format = log_format.check_version_may_write(log)
    except LogError as error:
        return Finding("log format", "problem", error.message, error.hint)
    message = (
        f"format {log_format.NUMBER}" if has_format else "log/FORMAT is missing; the next append adds it"
    )
    return Finding("log format", "ok", message)


def _check_tails(segments: list[Segment]) -> Iterator[Finding]:
    for segment in segments:
        if not segment.is_newest:
            continue
        with open_segment(segment) as fd:
            is_whole = is_line_start(fd, disk.status_of_descriptor(fd).st_size)
        if not is_whole:
            message = (
                f"{_segment_name(segment)} does not end with a newline: a writer is active, or was killed"
            )
            yield Finding("tail", "warning", message, "nothing; the next append completes the line")


def _check_seals(log: Path, segments: list[Segment], seals: Seals) -> Iterator[Finding]:
    if broken := [line for line in seals.damaged_lines if line.damage != "torn"]:
        files = ", ".join(sorted({line.file for line in broken}))
        message = format_count_with_words(
            len(broken), f"line of {files} is damaged", f"lines of {files} are damaged"
        )
        yield Finding(
            "seals", "problem", message, "store.maintenance.verify() says which; put back a copy of the log"
        )
    unlike_read = Watermarks(log.parent).find_differences()
    lost: list[Loss | OpenLoss] = [*find_losses(log)]
    for loss in lost + [each for each in unlike_read if isinstance(each, OpenLoss)]:
        yield Finding("seals", "problem", f"{loss.stream}/{loss.description}", LOSS_REMEDY)
    for longer in find_grown_segments(log):
        yield Finding(
            "seals", "problem", f"{'/'.join(longer.seal.name)}: {longer.description}", longer.remedy
        )
    for text in unlike_read:
        if isinstance(text, ReturnedText):
            yield Finding("erasures", "warning", f"{text.stream}/{text.description}", "store.erasure.scrub()")
    yield from _check_missing_seals(log, segments, seals)


def _check_missing_seals(log: Path, segments: list[Segment], seals: Seals) -> Iterator[Finding]:
    unsealed = [
        segment
        for made in group_segments_by_writer(segments).values()
        for segment in made[:-1]
        if (segment.stream, segment.name.filename) not in seals.last
    ]
    owner = Ownership(log)
    foreign = sum(owner.is_foreign(segment.name.filename) for segment in unsealed)
    if own := len(unsealed) - foreign:
        message = format_count_with_words(own, "older segment has no seal", "older segments have no seal")
        yield Finding("seals", "warning", message, "store.maintenance.seal()")
    if coming := foreign + len(find_arriving_segments(log)):
        one = "segment of another writer has not arrived whole"
        message = format_count_with_words(coming, one, "segments of other writers have not arrived whole")
        remedy = "copy the log of the other store again; store.maintenance.verify() lists them"
        yield Finding("seals", "warning", message, remedy)


def _check_segment_dates(segments: list[Segment]) -> Iterator[Finding]:
    """Yield a finding for each segment dated before its predecessor, which means that a clock was wrong."""
    written = [made for (_, writer), made in group_segments_by_writer(segments).items() if writer]
    for old, new in (pair for made in written for pair in pairwise(made)):
        if new.name.day < old.name.day:
            yield Finding(
                "days",
                "warning",
                f"{_segment_name(old)} has a later day than its successor, {new.name.filename}:"
                " the clock went back",
                "no event is lost; correct the clock of the machine that wrote these segments",
            )


def _segment_name(segment: Segment) -> str:
    return f"{segment.stream}/{segment.name.filename}"


def suggest_import_of_notes(store: Path) -> list[Finding]:
    """Suggest an import if the store is empty and its folder contains notes."""
    folder = find_notes_beside(store)
    if folder is None:
        return []
    text = f"{escape_invalid_utf8(folder)} has notes, and the store beside them is empty"
    return [Finding("notes", "ok", f"{text}: the format memory-folder imports them")]


def check_contradictions(db: Connection) -> list[Finding]:
    """Warn of memory conflicts that a person must resolve."""
    count = count_open_conflicts(db)
    text = format_count_with_words(count, "conflict of memories waits", "conflicts of memories wait")
    remedy = "decide which memories to keep: store.memories.conflicts() lists the conflicts"
    return [Finding("contradictions", "warning", f"{text} for a person", remedy)] if count else []


_MOST_CHATS = 8


def check_scope(db: Connection, people: People) -> Iterator[Finding]:
    """Report the default scope of contexts, and which chats share it because their names are equal."""
    scope, why, _ = choose_automatic_scope(db, people)
    yield Finding("scope", "ok", f"{scope}: {escape_invalid_utf8(why)}")
    if scope == "store":
        yield from _check_same_names(db, people)
    elif nameless := [*nameless_messenger_chats(db, people)]:
        message = f"kept separate, as their messages give no name: {_list_chats(nameless)}"
        yield Finding("scope", "ok", f"{message}; context.people joins the chats of one person")


def _check_same_names(db: Connection, people: People) -> Iterator[Finding]:
    """Report each name that makes several messenger chats share a scope."""
    for name, chats in chats_by_name(db).items():
        alike = [chat for chat in chats if people.is_messenger(chat) and people.owner(chat) is None]
        if len(alike) > 1:
            message = (
                f"{name} speaks in {_list_chats(alike)}: they share their memory, since the name is the same"
            )
            remedy = "if these are several people, list the chats of each in context.people"
            yield Finding("scope", "warning", escape_invalid_utf8(message), remedy)


def _list_chats(chats: list[str]) -> str:
    more = f" and {len(chats) - _MOST_CHATS:,} more" if len(chats) > _MOST_CHATS else ""
    return escape_invalid_utf8(", ".join(chats[:_MOST_CHATS]) + more)


MOUNTS = Path("/proc/self/mountinfo")

_WAL_BUG = ((3, 7, 0), (3, 51, 3))
_LITTLE_ROOM = 256 * 1024 * 1024
_FEW_INODES = 16  # a rebuild and an append to a new chat need fewer
_MOST_CONFLICTS = 5
_MAKE_READABLE = "chmod -R u+rwX on it, or run memlog as its owner; if the disk fails, copy the store"
_AGAIN_FROM = "store.maintenance.examine(fix=True) removes what can be rebuilt"
_PROJECT = "store.maintenance.project(), or store.maintenance.examine(fix=True)"
_OVER_A_NETWORK = re.compile(
    r"nfs\d?|cifs|smb\w*|9p|afs|ceph|glusterfs|lustre|gpfs|beegfs|ocfs2|gfs2|davfs|virtiofs|fuse(\..*)?"
)


def examine_store(
    read_model: ReadModel, language_model: LanguageModelProvider | None, *, fix: bool = False
) -> list[Finding]:
    """Run all checks. A check that cannot read its subject reports a problem.

    With `fix`, damaged read models and caches are rebuilt, and other users lose access to the store.
    Nothing else changes.
    """
    checks: dict[str, Callable[[], Finding | list[Finding]]] = {
        "sqlite": _check_sqlite,
        "vectors": _check_vector_search,
        "model": lambda: examine_models(read_model, language_model),
        "store": lambda: _check_store_exists(read_model),
        "file system": lambda: _check_file_system(read_model.path),
        "owner": lambda: _check_owner(read_model.path, fix=fix),
        "disk": lambda: _check_disk_space(read_model),
        "permissions": lambda: _check_permissions(read_model.path, fix=fix),
        "read model": lambda: _check_read_model(read_model, fix=fix),
        "lines": lambda: _check_lines_conflicts_and_scope(read_model),
        "long texts": lambda: _check_long_texts(read_model),
        "cache": lambda: _check_vector_cache(read_model, fix=fix),
        "log": lambda: examine_log(read_model.projector.log),
        "notes": lambda: suggest_import_of_notes(read_model.path),
    }
    findings: list[Finding] = []
    for check, look in checks.items():
        try:
            found = look()
        except OSError as error:
            found = Finding(check, "problem", convert_system_error(error).message, _MAKE_READABLE)
        findings += found if isinstance(found, list) else [found]
    return findings


def _check_sqlite() -> Finding:
    module = choose_binding()
    message = f"{describe_binding()} ({escape_invalid_utf8(str(module.__file__))})"
    if not _WAL_BUG[0] <= module.sqlite_version_info < _WAL_BUG[1]:
        return Finding("sqlite", "ok", message)
    return Finding(
        "sqlite",
        "warning",
        f"{message}: versions before 3.51.3 can damage a database that two connections write at once;"
        " memlog writes with one",
        "pip install --upgrade pysqlite3, or a Python with SQLite 3.51.3",
    )


def _check_vector_search() -> Finding:
    why = why_no_vectors()
    if why is None:
        return Finding("vectors", "ok", "sqlite-vec works")
    remedy = "pip install pysqlite3 sqlite-vec; until then, searches find words, but not meanings"
    return Finding("vectors", "warning", why, remedy)


def _check_store_exists(read_model: ReadModel) -> Finding:
    error = find_error_raised_by(lambda: check_store_exists(read_model.path))
    return _finding_from_error("store", error, escape_invalid_utf8(read_model.path), "problem")


def _check_file_system(store: Path) -> Finding:
    try:
        kind = file_system_type(store, MOUNTS.read_text())
    except FileNotFoundError:  # not Linux
        kind = None
    if kind is None or not is_network_file_system(kind):
        return Finding("file system", "ok", kind or "of an unknown type")
    message = f"{kind}: locks and syncs may not hold over a network"
    return Finding("file system", "warning", message, "keep the store on a disk of this machine, and copy it")


def file_system_type(folder: Path, mounts: str) -> str | None:
    """Return the type of the file system of `folder`, such as `ext4`; None if it is unknown.

    mounts: the text of /proc/self/mountinfo.
    """
    path = folder.resolve()
    best, kind = -1, None
    for line in mounts.splitlines():
        before, dash, after = line.partition(" - ")
        fields = before.split(" ")
        if not dash or len(fields) < 5:
            continue
        # In a mount point, a space is written as `\040`.
        point = Path(re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[4]))
        # Of two mounts on one folder the later one hides the earlier.
        if path.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), after.split(" ")[0]
    return kind


def is_network_file_system(kind: str) -> bool:
    """Whether file systems of this type, including FUSE, may be remote, with unreliable locks and fsync."""
    return _OVER_A_NETWORK.fullmatch(kind) is not None


def _check_disk_space(read_model: ReadModel) -> Finding:
    folder = _nearest_folder(read_model.path)
    free, inodes = shutil.disk_usage(folder).free, os.statvfs(folder)
    current = read_model.projector.generations.find_live_file()
    needed = _LITTLE_ROOM + (0 if current is None else disk.status_of_path(current).st_size)
    if free < needed:
        message = f"{free:,} bytes are free; a rebuild may need {needed:,}"
        return Finding("disk", "warning", message, "free some space; rm -r cache is always safe")
    # File systems without a fixed number of inodes report 0.
    if inodes.f_files and inodes.f_favail < _FEW_INODES:
        message = format_count_with_words(inodes.f_favail, "more file can be made", "more files can be made")
        message = f"{message}: the file system is out of inodes"
        return Finding("disk", "warning", message, "remove files from it; rm -r cache is always safe")
    return Finding("disk", "ok", f"{free:,} bytes are free")


def _nearest_folder(folder: Path) -> Path:
    return folder if disk.is_folder(folder) else _nearest_folder(folder.absolute().parent)


def _check_owner(store: Path, *, fix: bool) -> Finding:
    """Check that this user may read and write every file of the store, whoever created it."""
    refused = list(find_permission_errors(store))
    if fix:
        removed = [note for error in refused if (note := remove_or_rename_unusable(store, error)) is not None]
        refused = list(find_permission_errors(store))
        if removed and not refused:
            return Finding("owner", "fixed", "; ".join(removed))
    if not refused:
        return Finding("owner", "ok", "the files of the store can be read and written")
    are = format_count_with_words(len(refused), "file or folder is", "files or folders are")
    message = f"{are} another user's, such as {escape_invalid_utf8(refused[0].filename)}"
    return Finding(
        "owner", "problem", message, f"chown -R {os.geteuid()} on the store, as root; {_AGAIN_FROM}"
    )


def _check_permissions(store: Path, *, fix: bool) -> Finding:
    open_ones = [
        path for path in _own_paths(store) if stat.S_IMODE(disk.status_of_path(path).st_mode) & 0o077
    ]
    if not open_ones:
        return Finding("permissions", "ok", "only the owner can read the store")
    are = format_count_with_words(len(open_ones), "file or folder is", "files or folders are")
    message = f"{are} open to others, such as {escape_invalid_utf8(open_ones[0])}"
    if not fix:
        return Finding(
            "permissions",
            "problem",
            message,
            "chmod -R go= on the store, or store.maintenance.examine(fix=True)",
        )
    for path in open_ones:
        disk.set_mode(path, stat.S_IMODE(disk.status_of_path(path).st_mode) & 0o700)
    return Finding("permissions", "fixed", message)


def _own_paths(store: Path) -> Iterator[Path]:
    """Yield the store's files and folders except symlinks, but not its own folder, which may be shared."""
    for name in layout.PRIVATE:
        path = store / name
        if path.exists() and not path.is_symlink():
            yield path
            yield from (each for each in path.rglob("*") if not each.is_symlink())


def _check_read_model(read_model: ReadModel, *, fix: bool) -> Finding:
    projector = read_model.projector
    if not disk.is_folder(projector.log):
        return Finding("read model", "ok", "the log is empty")
    found = _compare_with_log(read_model)
    if found.state == "ok" or not fix:
        return found
    try:
        read_model.check_writable()
        projector.catch_up()
    except MemlogError as error:
        return Finding("read model", "problem", error.message, error.hint)
    return msgspec.structs.replace(found, state="fixed", remedy="")


def _compare_with_log(read_model: ReadModel) -> Finding:
    projector = read_model.projector
    if read_model.is_read_only:
        return Finding("read model", "warning", "the store cannot be written", "chmod u+w on the store")
    why = projector.why_live_generation_unusable()
    if projector.frozen is not None:
        return Finding("read model", "warning", projector.frozen.message, projector.frozen.hint)
    if why is not None:
        is_missing = projector.generations.find_live_file() is None
        return Finding("read model", "warning" if is_missing else "problem", why, _PROJECT)
    with converting_errors("the read model"):
        unread = catchup.count_unread_bytes(projector.connect_to_live(), projector.log)
        lines = catchup.count_unread_lines(projector.connect_to_live(), projector.log)
    if lines:
        return Finding("read model", "warning", f"{unread:,} bytes of the log are not read yet", _PROJECT)
    waiting = f"; {unread:,} bytes wait for the end of their line" if unread else ""
    return Finding("read model", "ok", f"up to the log{waiting}")


def _check_lines_conflicts_and_scope(read_model: ReadModel) -> list[Finding]:
    """Report conflicts and quarantined lines, which no read returns, and memory conflicts and the scope."""
    try:
        with converting_errors("the read model"):
            db = read_model.projector.connect_to_live(read_only=read_model.is_read_only)
            of_scope = check_scope(db, read_model.people)
            return [_check_conflicts(db), _check_quarantine(db), *check_contradictions(db), *of_scope]
    except DatabaseError:  # `_check_read_model` reports it
        return []


def _check_conflicts(db: Connection) -> Finding:
    """Report acknowledged events that are never returned, because an earlier event has the same id."""
    count = count_rows(db, "conflicts")
    if not count:
        return Finding("conflicts", "ok", "no id names two events")
    newest = conflicting_lines(db, _MOST_CONFLICTS)
    listed = "; ".join(map(_describe_conflict, newest)) + ("; …" if count > len(newest) else "")
    events = format_count_with_words(
        count, "event is not shown: its id names", "events are not shown: their ids name"
    )
    remedy = "append each event that should be found again with a new id"
    return Finding("conflicts", "warning", f"{events} an earlier one: {listed}", remedy)


def _check_quarantine(db: Connection) -> Finding:
    count = count_rows(db, "quarantine")
    if not count:
        return Finding("quarantine", "ok", "every line is an event")
    message = format_count_with_words(
        count, "line is not an event that memlog knows", "lines are not events that memlog knows"
    )
    return Finding(
        "quarantine",
        "warning",
        message,
        "store.maintenance.quarantine() says where, and what to do about each",
    )


def _describe_conflict(found: Conflict) -> str:
    stream = escape_invalid_utf8(found.stream)
    return (
        f"{found.id} in {stream}/{found.segment}, byte {found.offset}, after"
        f" {found.holder_segment}, byte {found.holder_offset}"
    )


def _check_long_texts(read_model: ReadModel) -> list[Finding]:
    projector = read_model.projector
    if not disk.is_folder(projector.log) or projector.why_live_generation_unusable() is not None:
        return []
    with converting_errors("the read model"):
        found = count_plain_texts(projector.connect_to_live())
    findings = (
        Finding(
            "long texts",
            "warning",
            f"{format_count_with_words(each.count, 'event', 'events')} {_LONG_EVENTS[each.reason]}, such as"
            f" {escape_invalid_utf8(each.place)}",
            _SPLIT,
        )
        for each in found
    )
    return findings_or_ok("long texts", findings, "every text is indexed by its structure")


_LONG_EVENTS = {
    "long_text": f"with more than {LONGEST_STRUCTURED:,} characters: found by words as they are written,"
    " without headings, word stems and parts of names",
    "long_list": f"with a ranked list of more than {LONGEST_LIST:,} entries, or of fewer with long names:"
    " the first ones are facts",
    "long_names": f"with more than {LONGEST_NAMES:,} characters of names (speaker, title, source, file):"
    " their text is one passage",
}
_SPLIT = "no text is lost; to make these texts easier to find, append them in shorter parts"


def _check_vector_cache(read_model: ReadModel, *, fix: bool) -> Finding:
    count, problems = check_cache(read_model.path, read_only=read_model.uses_databases_read_only)
    if not problems:
        return Finding("cache", "ok", format_count_with_words(count, "vector", "vectors"))
    if not fix:
        return Finding(
            "cache", "problem", "; ".join(problems), "rm -r cache, or store.maintenance.examine(fix=True)"
        )
    remove_database(read_model.path / layout.EMBEDDINGS)
    return Finding("cache", "fixed", "; ".join(problems))


def has_no_problem(findings: list[Finding]) -> bool:
    """Whether no finding is a problem."""
    return all(finding.state != "problem" for finding in findings)
