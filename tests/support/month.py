"""Makes the log of a month of one assistant's life, from the tables in fixtures/month.

    python -m tests.support.month FOLDER

The tables hold what was said and kept, written by hand; this spreads it over the days. Nothing in the log
depends on when or where it is made; tests/projector/test_month_replays.py compares. What stands in it is in
fixtures/month/README.md.
"""

import json
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from memlog.eventlog import events
from memlog.eventlog.events import Event
from memlog.eventlog.log.streams import conversation_stream
from tests.support.older_log import OlderLog
from tests.support.places import FIXTURES

FOLDER = FIXTURES / "month"
TOTAL = 2000
DAYS = 30

_FIRST = datetime(2026, 1, 15, tzinfo=UTC)
_MINUTE = 60_000
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_ACCESSES = 110
"""At least so many; what is missing of the total is made up by more of them."""

_RATES = {
    **{"decisions": 1.0, "summaries": 0.99, "context": 0.9, "identity": 1.0, "config": 0.99},
    **{"credential": 1.0, "solution": 0.98, "event": 0.93, "conversation": 0.85, "temp": 0.6, "debug": 0.7},
}
_MODELS = ("claude-sonnet", "claude-haiku")
_PEOPLE = {
    *("Elina", "Андрей", "Sofia", "Leo", "Kalevi", "Riikka", "Tom", "陈静", "Ngozi Okafor", "Hanna Vuorela"),
}
_SKIES = {
    "telegram:elina": {"snow": "lumisadetta", "cloud": "pilvistä", "clear": "kirkasta", "sleet": "räntää"},
    "telegram:andrei": {"snow": "снег", "cloud": "облачно", "clear": "ясно", "sleet": "мокрый снег"},
    "wechat:chenjing": {"snow": "下雪", "cloud": "多云", "clear": "晴", "sleet": "雨夹雪"},
    "whatsapp:perhe": {
        "snow": "Lunta sataa",
        "cloud": "Pilvistä",
        "clear": "Kirkas päivä",
        "sleet": "Räntää",
    },
}
_BRIEFS = {
    "snow": "Snow all day; the trams run late, leave ten minutes earlier.",
    "cloud": "Grey and dry; nothing to shovel.",
    "clear": "Clear and cold; sunglasses on the way to the site.",
    "sleet": "Sleet; the pavement is ice by the evening.",
}


@dataclass
class Item:
    """An event, or a line of another program.

    ts, arrival: when it happened and when it was appended, in milliseconds since the month began.
    """

    ts: int
    arrival: int
    event: Event | dict[str, Any]


@dataclass
class Month:
    """What has been gathered of the month.

    kept: when a memory began to stand, or ceased to.

    Only `random()` is asked of the generator: it alone gives the same on every Python.
    """

    items: list[Item] = field(default_factory=list)
    rng: random.Random = field(default_factory=lambda: random.Random("a month"))
    kept: list[tuple[int, str, bool]] = field(default_factory=list)

    def add(self, ts: int, event: Event, *, late: int = 0) -> None:
        """Have `event` happen at `ts`, and be appended a moment later, or `late` milliseconds after that."""
        event.ts = stamp(ts)
        self.items.append(Item(ts, ts + 20 + self.below(900) + late, event))

    def saved(self, name: str) -> Item:
        """How a memory was first saved."""
        return next(item for item in self.items if getattr(item.event, "id", None) == f"save-{name}")

    def below(self, end: int) -> int:
        """A number from 0 to below `end`."""
        return int(self.rng.random() * end)

    def between(self, start: int, end: int) -> int:
        """A number from `start` to below `end`."""
        return start + self.below(end - start)


def stamp(milliseconds: int) -> str:
    """A moment of the month as memlog writes times."""
    moment = _FIRST + timedelta(milliseconds=milliseconds)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def start_of(day: str | int) -> int:
    """When the month's n-th day begins, in milliseconds."""
    return (int(day) - 1) * _DAY


def rows(name: str) -> Iterator[list[str]]:
    """The lines of a table, cut at `|`."""
    for line in (FOLDER / "tables" / name).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            yield line.split("|")


def blocks(name: str) -> Iterator[tuple[list[str], list[str]]]:
    """The parts of a table that begin with `@`: what stands behind it, and the lines below."""
    text = (FOLDER / "tables" / name).read_text(encoding="utf-8")
    for block in ("\n" + text).split("\n@ ")[1:]:
        head, *lines = block.rstrip("\n").split("\n")
        yield head.split(), lines


def chat_of(name: str) -> dict[str, str]:
    """`telegram:elina` as the members of an event."""
    channel, _, chat_id = name.partition(":")
    return {"channel": channel, "chat_id": chat_id}


def scope(name: str) -> str | None:
    """The chat of a memory or fact; None for the store's own."""
    return None if name == "-" else name


# What was said


def add_threads(month: Month) -> None:
    """The talks that matter, turn by turn."""
    for number, (head, lines) in enumerate(blocks("threads.txt"), 1):
        day, time, chat, *rest = head
        hour, minute = time.split(":")
        at = start_of(day) + int(hour) * _HOUR + int(minute) * _MINUTE
        late = int(rest[1]) * _MINUTE if rest else 0
        _add_thread(month, f"thread-{number:02}", chat, at, [line for line in lines if line], late)


def _add_thread(month: Month, name: str, chat: str, at: int, lines: list[str], late: int) -> None:
    said: list[str] = []
    for line in lines:
        at += month.between(12_000, 80_000)
        word, _, text = line.partition(" ")
        if word in _ASIDES:
            minutes, made = _ASIDES[word]
            month.add(at + minutes * _MINUTE, made(name, chat_of(chat), text, said))
        else:
            said.append(f"{name}-{len(said) + 1}")
            _say(month, said[-1], chat, at, line, late)


def _break(name: str, chat: dict[str, str], text: str, said: list[str]) -> Event:
    return events.SessionBreak(id=f"{name}-break", **chat, model=text)


def _summary(name: str, chat: dict[str, str], text: str, said: list[str]) -> Event:
    return events.SummaryWritten(
        id=f"{name}-summary", **chat, content=text, from_message_id=said[0], to_message_id=said[-1]
    )


def _extracted(name: str, chat: dict[str, str], text: str, said: list[str]) -> Event:
    return events.ExtractionCompleted(id=f"{name}-extracted", **chat, through_message_id=said[-1])


def _redact_turn(name: str, chat: dict[str, str], text: str, said: list[str]) -> Event:
    turn, _, reason = text.partition(" ")
    target = said[int(turn) - 1]
    stream = conversation_stream(**chat)
    return events.Redacted(id=f"{target}-redacted", target_id=target, reason=reason, stream=stream)


_ASIDES: dict[str, tuple[int, Callable[[str, dict[str, str], str, list[str]], Event]]] = {
    "break": (0, _break),
    "summary": (20, _summary),
    "extracted": (25, _extracted),
    "redact-turn": (40, _redact_turn),
}
"""What is no turn, by the word that it begins with: the minutes until then, and what makes it of the talk's
name, its chat, what is said behind the word, and the ids of the turns before."""


def _say(month: Month, event_id: str, chat: str, at: int, line: str, late: int = 0) -> None:
    said = events.Message(id=event_id, **chat_of(chat), **_turn(line, _MODELS[at // _DAY % 2]))
    # His telephone's clock is slow while he is abroad: what he says seems to stand before its question.
    slow = 95_000 if said.name == "Андрей" and start_of(19) <= at < start_of(24) else 0
    month.add(at - slow, said, late=slow + late)


def _turn(line: str, model: str) -> dict[str, Any]:
    """The members of `Name: text`, `tool name: json`, `subagent text`, or words of the assistant's alone."""
    speaker, colon, text = line.partition(": ")
    if line.startswith("subagent "):
        found = line.removeprefix("subagent ")
        meta = {"task_name": "compare-facades", "tokens_out": 3 * len(found.split())}
        return {"role": "assistant", "kind": "subagent_result", "content": found, "meta": meta}
    if line.startswith("tool "):
        return {"role": "tool", "content": text, "meta": {"tool": speaker.removeprefix("tool ")}}
    if colon and speaker in _PEOPLE:
        return {"role": "user", "name": speaker, "content": text}
    answer = line.removeprefix("Tuuli: ")
    meta = {"model": model, "tokens_in": 900 + 7 * len(answer), "tokens_out": 1 + len(answer) // 4}
    return {"role": "assistant", "name": "Tuuli", "content": answer, "meta": meta}


def add_talk(month: Month) -> None:
    """Each exchange once; those that begin with `*` on several days, until the month is full."""
    once, again = _talk()
    for number, (chat, exchange) in enumerate(once, 1):
        _exchange(month, f"talk-{number:03}", chat, month.between(1, DAYS + 1), exchange)
    number = 0
    while len(month.items) < TOTAL - _ACCESSES:
        chat, exchange = again[number * 7 % len(again)]
        number += 1
        _exchange(month, f"daily-{number:03}", chat, 1 + number * 11 % DAYS, exchange)


def _talk() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    once, again, chat = [], [], ""
    for line in (FOLDER / "tables" / "talk.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("= "):
            chat = line.removeprefix("= ")
        elif line.startswith("*"):
            again.append((chat, line.removeprefix("*")))
        elif line and not line.startswith("#"):
            once.append((chat, line))
    return once, again


def _exchange(month: Month, name: str, chat: str, day: int, exchange: str) -> None:
    _, temperature, sky, *_ = list(rows("days.txt"))[day - 1]
    at = start_of(day) + month.between(5 * _HOUR, 20 * _HOUR)
    slots = {
        "temp": temperature,
        "sky": _SKIES.get(chat, {}).get(sky, sky),
        "min": 3 + month.below(40),
        "hour": f"{15 + month.below(4)}.{month.below(4) * 15:02}",
        "n": 2 + month.below(7),
    }
    for turn, line in enumerate(exchange.format(**slots).split(" // "), 1):
        at += month.between(5_000, 60_000)
        _say(month, f"{name}-{turn}", chat, at, line)


def add_session_breaks(month: Month) -> None:
    """Early on Mondays and Thursdays, in each chat."""
    chats = (*_SKIES, "slack:C07-harbour", "cli:home")
    for day in range(1, DAYS + 1):
        if day % 7 in (1, 5):
            for place, chat in enumerate(chats):
                at = start_of(day) + 3 * _HOUR + place * _MINUTE
                name = f"break-{day:02}-{place}"
                month.add(at, events.SessionBreak(id=name, **chat_of(chat), model=_MODELS[day % 2]))


# What was kept


def add_memories(month: Month) -> None:
    """Memories as they are first saved. Each seventeenth comes late: its writer had no network."""
    tables = (f"memories.{language}.txt" for language in ("en", "fi", "ru", "zh"))
    for number, row in enumerate(row for table in tables for row in rows(table)):
        day, chat, name, category, kind, importance, topic, tags, words = row
        title, _, content = words.rpartition(" :: ")
        at = start_of(day) + month.between(8 * _HOUR, 20 * _HOUR)
        saved = events.MemorySaved(
            id=f"save-{name}",
            memory_id=name,
            title=title or None,
            content=content,
            category=category,
            kind={"f": "fact", "p": "preference", "i": "insight"}[kind],
            importance=float(importance),
            source="conversation" if scope(chat) else "manual",
            topic=topic,
            chat_id=scope(chat),
            tags=tags.split(","),
        )
        month.kept.append((at, name, True))
        month.add(at, saved, late=month.between(2, 30) * _HOUR if number % 17 == 11 else 0)


def add_changes(month: Month) -> None:
    """What became of memories. Each eleventh change comes late."""
    for number, (day, what, name, text) in enumerate(rows("changes.txt"), 1):
        at = start_of(day) + month.between(20 * _HOUR, 22 * _HOUR)
        event_id = f"{what}-{name}-{day}"
        late = month.between(9, 30) * _HOUR if number % 11 == 6 else 0
        month.add(at, _CHANGES[what](month, event_id, name, text), late=late)
        if what in ("archive", "delete", "redact"):
            month.kept.append((at, name, False))


def _update(month: Month, event_id: str, name: str, text: str) -> Event:
    members: dict[str, Any] = dict(part.split("=", 1) for part in text.split(";;"))
    for number in {"importance", "salience"} & set(members):
        members[number] = float(members[number])
    if "tags" in members:
        members["tags"] = members["tags"].split(",")
    return events.MemoryUpdated(id=event_id, memory_id=name, **members)


def _save_again(month: Month, event_id: str, name: str, text: str) -> Event:
    before = month.saved(name).event
    members = {member: getattr(before, member) for member in before.__struct_fields__}
    return events.MemorySaved(**members | {"id": event_id, "content": text, "title": None})


def _redact(target: str, stream: str) -> Callable[[Month, str, str, str], Event]:
    def make(month: Month, event_id: str, name: str, text: str) -> Event:
        return events.Redacted(id=event_id, target_id=target.format(name), stream=stream, reason=text)

    return make


_CHANGES: dict[str, Callable[[Month, str, str, str], Event]] = {
    "update": _update,
    "save": _save_again,
    "archive": lambda month, event_id, name, text: events.MemoryArchived(id=event_id, memory_id=name),
    "delete": lambda month, event_id, name, text: events.MemoryDeleted(id=event_id, memory_id=name),
    "redact": _redact("save-{}", "memory"),
    "redact-core": _redact("core-{}-1", "core"),
    "redact-fact": _redact("fact-{}-1", "facts"),
}


def add_accesses(month: Month) -> None:
    """Memories that were given to the assistant, until there are as many events as there should be."""
    number = 0
    while len(month.items) < TOTAL:
        number += 1
        at = start_of(1 + number * 7 % DAYS) + month.between(10 * _HOUR, 19 * _HOUR)
        known = dict.fromkeys(name for since, name, _ in sorted(month.kept) if since < at)
        gone = {name for since, name, stands in month.kept if since < at and not stands}
        names = [name for name in known if name not in gone] or ["elina-work"]
        given = dict.fromkeys(names[month.below(len(names))] for _ in range(1 + month.below(4)))
        month.add(at, events.MemoryAccessed(id=f"access-{number:03}", memory_ids=list(given)))


def add_decays(month: Month) -> None:
    """One a day."""
    for day in range(1, DAYS + 1):
        at = start_of(day) + _HOUR
        month.add(at, events.SalienceDecayed(id=f"decay-{stamp(at)[:10]}", rates=dict(_RATES)))


def add_days(month: Month) -> None:
    """What happened each day; every three days are distilled."""
    pending: list[str] = []
    for day, _, _, *happened in rows("days.txt"):
        for number, text in enumerate(happened, 1):
            pending.append(f"day-{day}-{number}")
            # The last of a day is often recorded after midnight.
            at = start_of(day) + 18 * _HOUR + number * 2 * _HOUR
            month.add(at, _happened(pending[-1], day, text, 60 + month.below(900)))
        if int(day) % 3 == 0:
            _compress(month, int(day), pending)
            pending = []


def _happened(event_id: str, day: str, text: str, tokens: int) -> Event:
    channel, sender, summary = text.split(",", 2)
    return events.DailyEventRecorded(
        id=event_id,
        event_date=stamp(start_of(day))[:10],
        channel=channel,
        sender_id=sender,
        summary=summary,
        raw_tokens=tokens,
    )


def _compress(month: Month, day: int, ids: list[str]) -> None:
    since, until = start_of(day - 2), start_of(day + 1)
    made = [name for at, name, stands in month.kept if since <= at < until and stands]
    compressed = events.DailyEventsCompressed(id=f"compressed-{day}", ids=ids, memory_ids=made[:6])
    month.add(until + 5 * _HOUR // 2, compressed)


def add_facts(month: Month) -> None:
    """Facts and their removals. Each thirteenth comes a day late, after what replaced it."""
    counts: dict[str, int] = {}
    for number, (day, chat, topic, rank, value) in enumerate(rows("facts.txt"), 1):
        at = start_of(day) + 12 * _HOUR + number * 37_000
        late = 26 * _HOUR if number % 13 == 9 else 0
        counts[topic] = counts.get(topic, 0) + 1
        members = {"id": f"fact-{topic}-{counts[topic]}", "topic_key": topic, "chat_id": scope(chat)}
        month.add(at, _fact(members, rank, value), late=late)


def _fact(members: dict[str, Any], rank: str, value: str) -> Event:
    if rank == "-":
        return events.FactRemoved(**members, rank=int(value) if value else None)
    kind: Literal["ranked", "single"] = "ranked" if int(rank) else "single"
    return events.FactStored(**members, value=value, kind=kind, rank=int(rank))


def add_core(month: Month) -> None:
    """The core memory."""
    counts: dict[str, int] = {}
    for day, section, key, value in rows("core.txt"):
        counts[key] = counts.get(key, 0) + 1
        at = start_of(day) + 9 * _HOUR + counts[key] * 41_000
        name = f"core-{key}-{counts[key]}"
        if value == "-":
            month.add(at, events.CoreMemoryDeleted(id=name, section=section, key=key))
        else:
            month.add(at, events.CoreMemoryUpdated(id=name, section=section, key=key, value=value))


def add_documents(month: Month) -> None:
    """Sources, files as they were read, and what was removed."""
    for number, (head, lines) in enumerate(blocks("documents.txt"), 1):
        day, source, *rest = head
        month.add(
            start_of(day) + 7 * _HOUR + number * 1000, _document(f"doc-{number:02}", source, rest, lines)
        )


def _document(event_id: str, source: str, rest: list[str], lines: list[str]) -> Event:
    match rest:
        case []:
            kind, root = lines[0].split()
            return events.SourceRegistered(
                id=event_id, source_id=source, kind=kind, root=root, include=["**/*.md"]
            )
        case ["gone"]:
            return events.SourceRemoved(id=event_id, source_id=source)
        case [file, "gone"]:
            return events.DocumentRemoved(id=event_id, source_id=source, file=file)
    content = "\n".join(lines).strip() + "\n"
    size = len(content.encode())
    return events.DocumentIndexed(
        id=event_id, source_id=source, file=rest[0], filetype="md", size=size, content=content
    )


def add_briefs(month: Month) -> None:
    """What a scheduler writes by itself each morning, in a shape of its own and without `at`."""
    for day, temperature, sky, *_ in rows("days.txt"):
        at = start_of(day) + 5 * _HOUR
        # On one day the scheduler had no disk, and writes the line two days later, into the file of its day.
        arrival = at + 2 * _DAY + _HOUR if day == "12" else at
        content = f"Tampere, {temperature} degrees. {_BRIEFS[sky]}"
        month.items.append(Item(at, arrival, brief(day, at, arrival, content)))


def brief(day: str, at: int, arrival: int, content: str) -> dict[str, Any]:
    """A line of the scheduler."""
    meta = {"source": "scheduler", "task_name": "morning-brief", "written_at": stamp(arrival)}
    said = {"role": "assistant", "content": content, "type": None, "meta": meta}
    return {"id": f"brief-{int(day):02}", "ts": stamp(at).replace(".000Z", "Z")} | said


def odd_lines(month: Month) -> list[Item]:
    """Lines that are no events of their own: two that were tried again, and one of a known id."""
    saved = month.saved("flat-alarm")
    briefs = [item for item in month.items if isinstance(item.event, dict)]
    retried, revised = briefs[19], briefs[24]
    later = revised.arrival + _HOUR
    return [
        Item(saved.ts, saved.arrival + 4_000, saved.event),
        Item(retried.ts, retried.arrival + 30_000, retried.event),
        Item(revised.ts, later, brief("25", revised.ts, later, "The thermometer was broken this morning.")),
    ]


# The log


def gathered() -> list[Item]:
    """All of the month, in the order in which it was appended."""
    month = Month()
    for add in (
        *(add_threads, add_session_breaks, add_memories, add_changes, add_decays, add_days, add_facts),
        *(add_core, add_documents, add_briefs, add_talk, add_accesses),
    ):
        add(month)
    assert len(month.items) == TOTAL, len(month.items)
    return sorted(month.items + odd_lines(month), key=lambda item: item.arrival)


def make(folder: Path) -> int:
    """Write the log below `folder`, in memlog's first format; return the number of its lines."""
    items = gathered()
    log = OlderLog(folder)
    last = -1
    for item in items:
        # No two lines at one moment: so their order can be read from the log.
        last = max(item.arrival, last + 1)
        if isinstance(item.event, dict):
            _write_as_others_do(folder, item.event)
        else:
            log.append(item.event, stamp(last))
    return len(items)


def _write_as_others_do(folder: Path, line: dict[str, Any]) -> None:
    path = folder / "log" / "conversations" / "scheduler_morning-brief" / f"{line['ts'][:10]}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    sys.stdout.write(f"{make(Path(sys.argv[1]))} lines in {sys.argv[1]}/log\n")
