"""The operations of `store.core`: read, set, delete, and import files."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, overload

import msgspec
from msgspec import Meta

from memlog.eventlog.codec.hashing import short_sha256
from memlog.eventlog.errors import BadInput
from memlog.eventlog.events import CoreMemoryDeleted, CoreMemoryUpdated, Event
from memlog.eventlog.fields import Chat, ChatName
from memlog.eventlog.log.quarantine import MAX_LINE
from memlog.eventlog.log.streams import escape_invalid_utf8
from memlog.eventlog.positions import AppendWarning, Position, collect_warnings
from memlog.eventlog.sections import People
from memlog.eventlog.text import normalise_to_nfc
from memlog.projector.sqlite import Connection
from memlog.query.context.scope import choose_automatic_scope, read_core_memory_in_scope
from memlog.query.event_index import streams_containing_name
from memlog.query.records import CoreMemory, deleted_core_keys, read_core_memory
from memlog.query.request import PathField
from memlog.service.engine.engine import Engine
from memlog.service.engine.operation import OperationGroup, operation
from memlog.service.engine.requests import ScopeField
from memlog.service.memory.core_markdown import is_file_of_project, parse_core_memory

_SHAPE_HINT = 'use the form {"user":{"key":"value"},"agent":{}}'
_TEXT_SUFFIXES = (".md", ".markdown", ".txt")


def has_json_suffix(path: Path) -> bool:
    """Whether a file has a JSON suffix.

    Raises:
        BadInput: the file has no JSON, Markdown or text suffix.
    """
    suffix = path.suffix.lower()
    if suffix != ".json" and suffix not in _TEXT_SUFFIXES:
        raise BadInput(
            f"{escape_invalid_utf8(path)}: the suffix is not one of JSON, Markdown or text",
            hint=f"use .json, {', '.join(_TEXT_SUFFIXES[:-1])} or {_TEXT_SUFFIXES[-1]}",
        )
    return suffix == ".json"


def read_small_file(path: Path) -> bytes:
    """Return the bytes of a file of at most 16 MiB.

    Raises:
        BadInput: the file is unreadable, or larger than 16 MiB.
    """
    try:
        # Opening a pipe without a writer would block forever.
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise BadInput(f"not a regular file: {escape_invalid_utf8(path)}", hint="use a regular file")
        with path.open("rb") as file:
            data = file.read(MAX_LINE + 1)
    except OSError as error:
        raise BadInput(
            f"{escape_invalid_utf8(path)}: {error.strerror}", hint="check path and permissions"
        ) from error
    if len(data) > MAX_LINE:
        raise BadInput(f"{escape_invalid_utf8(path)} is larger than 16 MiB", hint="use a smaller file")
    return data


def parse_core_json(data: bytes, path: Path) -> CoreMemory:
    """Return the core memory in a JSON file, which has the schema of model/core_memory.json.

    Raises:
        BadInput: the file does not match the schema.
    """
    try:
        document = json.loads(_decode_utf8(data, path), object_pairs_hook=_refuse_duplicates)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"not JSON: {escape_invalid_utf8(path)}: {error}", hint=_SHAPE_HINT) from error
    for problem in _find_problems(document):
        raise BadInput(f"{escape_invalid_utf8(path)}: {problem}", hint=_SHAPE_HINT)
    return CoreMemory(user=document.get("user", {}), agent=document.get("agent", {}))


def _decode_utf8(data: bytes, path: Path) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{escape_invalid_utf8(path)} is not UTF-8: byte {error.start}: {error.reason}",
            hint="save the file as UTF-8",
        ) from error


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise ValueError(f"{name!r} occurs twice")
        members[name] = value
    return members


def _find_problems(document: Any) -> Iterator[str]:  # noqa: ANN401 - whatever JSON can say
    if not isinstance(document, dict):
        yield "it is not a JSON object"
        return
    for section, values in document.items():
        if section not in ("user", "agent"):
            yield f"{section!r} is neither user nor agent"
        elif not isinstance(values, dict):
            yield f"{section} is not a JSON object"
        else:
            yield from (
                f"{section}: {why}"
                for key, value in values.items()
                for why in _find_problems_of_value(key, value)
            )


def _find_problems_of_value(key: str, value: Any) -> Iterator[str]:  # noqa: ANN401
    if not key:
        yield "a key is empty"
    if not isinstance(value, str):
        yield f"the value of {key!r} is not a string"
    elif escape_invalid_utf8(key + value) != key + value:
        yield f"{key!r} has half of a surrogate pair"


Section = Literal["user", "agent"]
SectionField = Annotated[Section, "The section: user or agent."]
Key = Annotated[str, "The key."]


class CoreValue(msgspec.Struct, frozen=True):
    """A value of the core memory, with its section and key."""

    section: Section
    key: str
    value: str


class CoreImportReport(msgspec.Struct, omit_defaults=True):
    """The result of an import.

    set: the values that were appended.
    deleted: the values whose keys the file no longer has.
    kept: the stored values of keys in the file that stay unchanged.
    other: how many of `kept` would change with `force`.
    skipped: how many lines of the file were not understood; 0 for JSON.
    warnings: about the appended events.
    """

    set: list[CoreValue]
    deleted: list[CoreValue]
    kept: list[CoreValue]
    other: int
    skipped: int
    warnings: list[AppendWarning] = []


def _stored_key(section: dict[str, str], key: str) -> str:
    """Return the key of the section that is canonically equivalent to `key`; otherwise `key`."""
    return next((known for known in section if normalise_to_nfc(known) == normalise_to_nfc(key)), key)


def _check_chat_and_section(given: Any) -> None:  # noqa: ANN401 - the request
    if given.chat is not None:
        Chat.of(given.chat)
    if given.key is not None and given.section is None:
        raise BadInput("a key was given without a section", hint="specify the section: user or agent")


class Core(OperationGroup):
    """The core memory of a store: `store.core`."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._view = engine.read_model.projector.core_view

    @overload
    def get(self, *, chat: ChatName | None = None) -> CoreMemory: ...
    @overload
    def get(self, section: Section, *, chat: ChatName | None = None) -> dict[str, str]: ...
    @overload
    def get(self, section: Section, key: str, *, chat: ChatName | None = None) -> str | None: ...
    @operation("read", missing="core_key_not_found", check=_check_chat_and_section)
    def get(
        self,
        section: SectionField | None = None,
        key: Key | None = None,
        *,
        chat: Annotated[
            ScopeField | None, "Show what contexts of this conversation contain, with its person's profile."
        ] = None,
    ) -> CoreMemory | dict[str, str] | str | None:
        """Show the core memory, one section of it (user or agent), or the value of one key.

        If several people talk to the agent, the profile of each comes from that person's chats only.

        Raises:
            BadInput: a key without a section, or a conversation that is not CHANNEL:CHAT_ID.
        """
        scope = None if chat is None else str(Chat.of(chat))
        people = self._engine.read_model.people
        memory = self._read(lambda db: _read_visible_memory(db, people, scope))
        if section is None:
            return memory
        values: dict[str, str] = getattr(memory, section)
        return values if key is None else values.get(_stored_key(values, key))

    @operation("append")
    def set(self, section: SectionField, key: Key, value: Annotated[str, "The value."]) -> Position:
        """Set the value of a key in a section, user or agent.

        Raises:
            BadInput, Busy, LogError: as `Store.append`.
        """
        # An ASCII key has only one form, so the stored keys need not be read.
        if not key.isascii():
            key = _stored_key(self._section_values(section, creates=True), key)
        return self._append_one(CoreMemoryUpdated(section=section, key=key, value=value))

    @operation("append", missing="core_key_not_found")
    def delete(self, section: SectionField, key: Key) -> Position | Literal[False]:
        """Remove a key from a section, user or agent.

        Raises:
            BadInput, Busy, LogError: as `Store.append`.
        """
        values = self._section_values(section)
        key = _stored_key(values, key)
        if key not in values:
            return False
        return self._append_one(CoreMemoryDeleted(section=section, key=key))

    def _section_values(self, section: Section, *, creates: bool = False) -> dict[str, str]:
        """Return a section's values for all chats. With `creates`, create a missing store."""
        rows = self._decide(lambda db: read_core_memory_in_scope(db, None), creates=creates).shown
        return {row.key: row.value for row in rows if row.section == section}

    @operation("append", reads_paths=True)
    def import_file(
        self,
        path: Annotated[PathField, Meta(title="FILE"), "The file."],
        *,
        force: Annotated[bool, "Let the values of a Markdown file replace existing values."] = False,
    ) -> CoreImportReport:
        """Import values that the core memory lacks from a file.

        A Markdown or text file, such as USER.md, has lines `key: value`, and lists under headings; existing
        values stay, unless `force` is set. From a JSON file with the schema of model/core_memory.json, all
        values are set. From that file itself, edited by hand, changed values are set, and removed keys are
        deleted; then memlog rewrites the file.

        Raises:
            BadInput: the file cannot be read, or has another format; nothing was appended.
            Busy, LogError: as `Store.append`. It is safe to retry.
        """
        path = Path(path)
        if self._is_view(path) and (shown := self._view.read_view()) is not None:
            return self._import_view(path, shown.view, shown.base)
        data = read_small_file(path)
        if has_json_suffix(path):
            return self._import_sections(parse_core_json(data, path), force=True)
        sections, skipped = parse_core_memory(
            _decode_utf8(data, path), of_project=is_file_of_project(path.stem)
        )
        done = self._import_sections(sections, force=force)
        done.skipped = skipped
        return done

    def take_over(self, text: str, name: str) -> CoreImportReport:
        """Import values that the core memory lacks from a Markdown text, like `import_file`.

        Keys that somebody has deleted stay deleted, and values that a text of this `name` has set before are
        skipped: the id of each event derives from the name, key and value.
        """
        sections, skipped = parse_core_memory(text)
        done = self._find_changes(sections, force=False)
        deleted = self._decide(deleted_core_keys)
        done.set = [each for each in done.set if (each.section, each.key) not in deleted]
        ids = {each: _import_id(name, each) for each in done.set}
        known = self._decide(
            lambda db: {each for each in ids.values() if "core" in streams_containing_name(db, each)}
        )
        done.set = [each for each in done.set if ids[each] not in known]
        done.skipped = skipped
        done.warnings = collect_warnings(self._append(_set_event(each, ids[each]) for each in done.set))
        return done

    def _is_view(self, path: Path) -> bool:
        try:
            return path.samefile(self._view.path)
        except OSError:
            return False

    def _import_view(self, path: Path, view: bytes, base: bytes | None) -> CoreImportReport:
        sections = parse_core_json(view, path)
        # Without memlog's copy, the view before the change is unknown.
        done = self._import_sections(
            sections, force=True, base=None if base is None else parse_core_json(base, path)
        )
        self._view.accept_view(view)
        self.get()  # rewrites the view
        return done

    def _import_sections(
        self, sections: CoreMemory, *, force: bool, base: CoreMemory | None = None
    ) -> CoreImportReport:
        done = self._find_changes(sections, force=force, base=base)
        events: list[Event] = [_set_event(each) for each in done.set]
        events += [CoreMemoryDeleted(section=each.section, key=each.key) for each in done.deleted]
        if events:
            done.warnings = collect_warnings(self._append(events))
        return done

    def _find_changes(
        self, sections: CoreMemory, *, force: bool, base: CoreMemory | None = None
    ) -> CoreImportReport:
        """Return the changes that give the core memory a file's values.

        base: the file before a manual edit; only its differences from the edited file count.
        """
        standing, values = (
            _values_by_key(self._decide(read_core_memory, creates=True)),
            _values_by_key(sections),
        )
        before = {} if base is None else _values_by_key(base)
        wanted = {
            name: value
            for name, value in values.items()
            if value not in (standing.get(name), before.get(name)) and (force or name not in standing)
        }
        kept = [name for name in values if name in standing and name not in wanted]
        removed = [name for name in before if name in standing and name not in values]
        return CoreImportReport(
            set=[CoreValue(*name, value) for name, value in wanted.items()],
            deleted=[CoreValue(*name, standing[name]) for name in removed],
            kept=[CoreValue(*name, standing[name]) for name in kept],
            other=0 if force else sum(values[name] != standing[name] for name in kept),
            skipped=0,
        )


def _read_visible_memory(db: Connection, people: People, chat: str | None) -> CoreMemory:
    """Return the core memory shown in contexts for `chat` or, if it is None, in those without a chat."""
    is_of_all = choose_automatic_scope(db, people, chat).scope == "store"
    own = people.joined(chat) if chat is not None else frozenset[str]()
    memory = CoreMemory(user={}, agent={})
    for row in read_core_memory_in_scope(db, None if is_of_all else own).shown:
        getattr(memory, row.section)[row.key] = row.value
    return memory


def _set_event(value: CoreValue, event_id: str | None = None) -> CoreMemoryUpdated:
    return CoreMemoryUpdated(id=event_id, section=value.section, key=value.key, value=value.value)


def _import_id(name: str, value: CoreValue) -> str:
    """Return the id of an event that sets a value imported from the text named `name`."""
    joined = "\0".join((name, value.section, value.key, value.value))
    return short_sha256(joined.encode()).hexdigest()[:32]


def _values_by_key(memory: CoreMemory) -> dict[tuple[Section, str], str]:
    sections: tuple[tuple[Section, dict[str, str]], ...] = (("user", memory.user), ("agent", memory.agent))
    return {(section, key): value for section, values in sections for key, value in values.items()}
