"""Any JSON Lines, JSON or CSV files, read with a map; without a map, OpenAI API or ShareGPT conversations.

A message without an id is identified by its chat, author, time and text, and by its number among equal
messages in its file. A message without a time gets the time of the previous message in its chat or, if there
is none, of the import. System prompts are left out; keys are masked.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

from memlog.eventlog.errors import BadInput
from memlog.eventlog.events import Event, Message
from memlog.service.exchange.dialogues import Dialogue, split_document
from memlog.service.exchange.formats import ForeignData, Record, Skipped, Unreadable, Used, describe_error
from memlog.service.exchange.maps import HINT, ForeignMessage, RecordMap

_NAMES = {"jsonl": ("**/*.jsonl", "**/*.ndjson"), "json": ("**/*.json",), "csv": ("**/*.csv",)}


def read(source: ForeignData) -> Iterator[Record]:
    """Yield the messages of all files.

    Raises:
        BadInput: there is no map, and the files need one.
    """
    form = source.map.format if source.map else None
    seen: set[str] = set()
    strange: list[Unreadable] = []
    is_known = False
    for path in source.find_files(*(_NAMES[form] if form else sum(_NAMES.values(), ()))):
        file = _File(source, path, seen, strange)
        for record in file.records(source.map):
            yield record
            is_known |= isinstance(record, Used)
        seen |= file.hashed
    if strange and not is_known:
        raise BadInput(f"{strange[0].where}: {strange[0].why}", hint=f"pass map=FILE; {HINT}")


class _File:
    """A file of records.

    seen: the hash-based ids in earlier files. hashed: the hash-based ids in this file.
    strange: receives the first record of unknown form.
    """

    def __init__(self, source: ForeignData, path: Path, seen: set[str], strange: list[Unreadable]) -> None:
        self._source, self._path, self._seen, self._strange = source, path, seen, strange
        self._counts: Counter[str] = Counter()
        self._last_times: dict[str, str | None] = {}
        self._number, self._has_lines = 0, True
        self.hashed: set[str] = set()

    def records(self, chosen: RecordMap | None) -> Iterator[Record]:
        """Yield a record for each message."""
        for document in self._documents(chosen.format if chosen else None):
            if isinstance(document, Skipped | Unreadable):
                self._number += 1
                yield document
                continue
            is_empty = True
            for record in split_document(document) if chosen is None else chosen.find_records(document):
                is_empty, self._number = False, self._number + 1
                if chosen is None:
                    yield from self._convert_dialogue(record)
                elif chosen.message.is_wanted(record):
                    yield self._convert(partial(chosen.message.convert, record))
                else:
                    yield Skipped("excluded")
            if is_empty and chosen is not None:
                self._number += 1
                yield Unreadable(self._where, f"records: nothing at {chosen.records}")

    @property
    def _where(self) -> str:
        name = f"{self._source.display_name(self._path)}: record {self._number}"
        return self._source.where if self._has_lines else name

    def _documents(self, form: str | None) -> Iterator[Any]:
        """Yield the file's values: one per line or row, or the whole file as one value."""
        form = form or {".json": "json", ".csv": "csv"}.get(self._path.suffix.lower(), "jsonl")
        document = self._source.read_json(self._path) if form == "json" else None
        if form == "csv":
            yield from self._source.read_csv(self._path)
        elif form == "jsonl" or (isinstance(document, Unreadable) and "Extra data" in document.why):
            yield from self._source.read_json_lines(self._path)  # also of a .json file with a value per line
        else:
            self._has_lines = False
            yield document

    def _convert_dialogue(self, value: object) -> Iterator[Record]:
        try:
            dialogue = Dialogue(value)
        except (ValueError, RecursionError) as error:
            why = str(error) if isinstance(error, ValueError) else describe_error(error)
            yield (unknown := Unreadable(self._where, why))
            self._strange += [] if self._strange else [unknown]
            return
        # The number tells conversations with one beginning apart, and stays as they and the file grow.
        chat_id = _digest(dialogue.identity, self._count("dialogue", dialogue.identity))
        for message in dialogue.messages:
            yield self._convert(partial(dialogue.convert, message, chat_id))

    def _convert(self, convert: Callable[[], ForeignMessage]) -> Record:
        try:
            return self._use(convert())
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            why = str(error) if isinstance(error, ValueError) else describe_error(error)
            return Unreadable(self._where, why)

    def _use(self, message: ForeignMessage) -> Record:
        chat = f"{message.channel}:{message.chat_id}"
        place = quote(chat, safe=":-._~ ")  # without a slash, which ends it
        ts = self._last_times[chat] = message.ts or self._last_times.get(chat)
        if message.role == "system" or not message.parts:
            return Skipped("system" if message.role == "system" else "empty")
        name = f"jsonl/{place}/{message.native_id}"
        if message.native_id is None:
            said = ("jsonl", chat, message.written, message.name or message.role, message.told)
            name = f"jsonl/{_digest(*said, self._count(*said))}"
            self.hashed.add(name)
            if name in self._seen:
                return Skipped("duplicate_in_source")
        show = self._source.shorten_result if message.role == "tool" else self._source.clean_text
        parent = {"parent": f"jsonl/{place}/{message.parent}"} if message.parent else None
        events: list[Event] = [
            Message(
                id=f"{name}/{number}" if number else name,
                ts=ts,
                channel=message.channel,
                chat_id=message.chat_id,
                role=message.role,
                name=message.name and self._source.clean_text(message.name),
                content=show(content),
                meta=meta | ({"import": parent} if parent else {}) or None,
            )
            for number, content, meta in message.parts
        ]
        # Ids name their chat: no two sources share them.
        return Used(events, is_telling=False, has_own_id=message.native_id is not None)

    def _count(self, *given: str | None) -> int:
        """Count the given values, and return how often they were counted before."""
        self._counts[digest := _digest(*given)] += 1
        return self._counts[digest] - 1


def _digest(*given: str | int | None) -> str:
    return sha256(json.dumps(given).encode()).hexdigest()[:32]
