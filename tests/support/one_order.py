"""What a log says, told in the plainest way: its events in their one order, one after the other, in memory.

Order-free handlers must leave what this does (BEHAVIOUR A3, A4). Only what is simple is told here: no chunks,
no full text.
"""

import json
import re
import zlib
from collections import defaultdict
from datetime import datetime, timedelta
from functools import reduce
from operator import mul

from memlog.projector.subjects.memories import derive_memory_id

_NAME = re.compile(r"(\d{4}-\d\d-\d\d)(?:\.([a-z][a-z2-7]{5}))?(?:\.(\d+))?\.jsonl")
_FIELDS = ("content", "title", "category", "kind", "importance", "source", "topic", "chat_id", "tags")
_DEFAULTS = {"category": "other", "kind": "fact", "importance": 0.5, "source": "manual"}


_TAKEN_BACK = ("memory_saved", "memory_updated", "memory_archived", "memory_accessed")


def events_of(contents):
    """The accepted events of each stream, in their one order, as dicts; how many lines repeat or contradict.

    contents: the bytes of each segment by `log/STREAM/NAME.jsonl`.
    """
    streams = defaultdict(dict)
    for path, data in contents.items():
        stream, _, segment = path.removeprefix("log/").rpartition("/")
        streams[stream][segment] = data
    accepted, duplicates, conflicts = {}, 0, 0
    for stream, segments in streams.items():
        lines = list(_lines(stream, segments))
        targets = {
            target
            for line in lines
            if line["type"] == "redacted"
            for target in line.get("target_ids", [line.get("target_id")])
        }
        first = {}
        for line in lines:
            if line["id"] in targets and line["type"] != "redacted":
                continue
            standing = first.setdefault(line["id"], line)
            repeats = standing is not line and _content(standing) == _content(line)
            duplicates += repeats
            conflicts += standing is not line and not repeats
        time = _happened if stream.startswith("conversations/") else _precedence
        accepted[stream] = sorted(first.values(), key=lambda line: (time(line), line["position"]))
    return accepted, duplicates, conflicts


def _happened(line):
    return line["ts"]


def _precedence(line):
    """Decides which of two changes of one thing holds; no `ts` is far above the time of appending."""
    if "wins" in line:
        return line["wins"]
    appended = line.get("at") or f"{line['position'][0]}T23:59:59.999Z"
    latest = datetime.fromisoformat(appended) + timedelta(minutes=5)
    return min(line["ts"], latest.strftime("%Y-%m-%dT%H:%M:%S.") + f"{latest.microsecond // 1000:03d}Z")


def _place(segment):
    """(day, number, writer)."""
    day, writer, number = _NAME.fullmatch(segment).groups()
    return day, int(number or 0), writer or ""


def _may_grow(segment, segments):
    """Whether its writer appended to it last: plain names count their days, others their numbers alone."""
    of_writer = [_place(name) for name in segments if _place(name)[2] == _place(segment)[2]]
    age = (lambda place: place[1]) if _place(segment)[2] else (lambda place: place[:2])
    return _place(segment) == max(of_writer, key=age)


def _lines(stream, segments):
    for segment in sorted(segments, key=_place):
        offset, may_grow = 0, _may_grow(segment, segments)
        for line in segments[segment].splitlines(keepends=True):
            is_pending = may_grow and not line.endswith(b"\n") and not _has_crc(line)
            nuls = len(line) - len(line.lstrip(b"\0"))
            event = None if is_pending else _event(stream, segment, offset + nuls, line.strip(b"\0\n\r"))
            if event:
                yield event
            offset += len(line)


def _has_crc(line):
    said, _, crc = line.rpartition(b',"crc":')
    return crc == b'"%08x"}' % zlib.crc32(said)


def _event(stream, segment, offset, line):
    try:
        event = json.loads(line)
    except ValueError:
        return None
    place = {"position": (*_place(segment), offset)}
    if "at" in event:
        return event | place
    if not stream.startswith("conversations/"):
        return None
    channel, _, chat_id = stream.partition("/")[2].partition("_")
    own = {"id": f"{segment}:{offset}", "ts": f"{segment[:10]}T00:00:00.000Z", "type": "message"}
    event = own | {"channel": channel, "chat_id": chat_id} | event
    return event | place | {"ts": event["ts"].replace("01Z", "01.000Z")}


def _content(event):
    envelope = ("id", "ts", "at", "wins", "highest_wins", "v", "crc", "position")
    return {name: value for name, value in event.items() if name not in envelope and value is not None}


def without_hidden(told):
    """The events of each stream that no undone import hides; `told` has the events by stream."""
    hidden = set()
    lines = sorted(told.get("imports", []), key=lambda line: (_precedence(line), line["position"]))
    keys = lambda line, member: {(s, i) for s, ids in (line.get(member) or {}).items() for i in ids}  # noqa: E731
    for line in lines:
        if line["type"] == "events_imported":
            hidden -= keys(line, "appended")
        elif line["type"] == "import_undone":
            own = [each for each in lines if each["type"] == "events_imported" and each["run"] == line["run"]]
            hidden |= {key for each in own for key in keys(each, "appended")} - keys(line, "kept")
            hidden |= keys(line, "derived")
    return {
        stream: [event for event in events if (stream, event["id"]) not in hidden]
        for stream, events in told.items()
    }


def messages(events):
    """Of the events of a conversation by message id: its ts, content and state, latest change last."""
    found = {
        event["id"]: [event["ts"], event["content"], "current"]
        for event in events
        if event["type"] == "message"
    }
    for event in sorted(events, key=lambda line: (_precedence(line), line["position"])):
        if (message := found.get(event.get("message_id"))) is None:
            continue
        if event["type"] == "message_deleted":
            message[2] = "deleted"
        elif event["type"] == "message_updated":
            message[1:] = (
                message[1] if event.get("content") is None else event["content"],
                event.get("state") or message[2],
            )
    return found


def release_closed(events):
    """Events without those of extractions that no line closes."""
    closing = ("memories_extracted", "daily_events_compressed", "memories_merged", "profile_refreshed")
    closed = {event["id"] for event in events if event["type"] in closing}
    for event in events:
        if event["type"] == "redacted":
            closed |= {event.get("target_id"), *event.get("target_ids", [])}
    return [event for event in events if (event.get("extraction") or {}).get("id") in (None, *closed)]


def memories(events):
    """Each memory that stands, by its id."""
    records = defaultdict(_blank)
    undone = {name for event in events if event["type"] == "change_undone" for name in event["event_ids"]}
    for event in events:
        if event["id"] not in undone or event["type"] not in _TAKEN_BACK:
            _tell(records, event)
    return {name: _standing(record) for name, record in records.items() if record["saved"]}


def _blank():
    return {"saved": None, "salience": None, "decays": [], "accesses": [], "archived_at": None}


def _tell(records, event):
    match event["type"]:
        case "memory_saved":
            name = event.get("memory_id") or derive_memory_id(event.get("chat_id"), event["content"])
            _save(records[name], event)
        case "memory_updated":
            _update(records[event["memory_id"]], event)
        case "memory_archived":
            records[event["memory_id"]]["archived_at"] = event["ts"]
        case "memory_deleted":
            records[event["memory_id"]] = _blank()
        case "memory_accessed":
            for name in set(event["memory_ids"]):
                records[name]["accesses"].append(event["ts"])
        case "salience_decayed":
            for record in records.values():
                if record["saved"] or record["salience"] is not None:
                    record["decays"].append(event["rates"])


def _save(record, event):
    said = {name: event.get(name, _DEFAULTS.get(name)) for name in _FIELDS}
    created_at = record["saved"]["created_at"] if record["saved"] else event["ts"]
    own = {"event_id": event["id"], "created_at": created_at, "updated_at": event["ts"]}
    record.update(saved=said | own, archived_at=None)


def _update(record, event):
    if event.get("salience") is not None:
        record.update(salience=event["salience"], decays=[])
    given = {name: event[name] for name in _FIELDS if event.get(name) is not None}
    if record["saved"] and given:
        content = {"event_id": event["id"]} if "content" in given else {}
        record["saved"] |= given | content | {"updated_at": event["ts"]}


def _standing(record):
    said = record["saved"]
    salience = 1.0 if record["salience"] is None else record["salience"]
    factors = (rates.get(said["category"], 1.0) for rates in record["decays"])
    return said | {
        "title": said["title"] or said["content"][:80],
        "tags": json.dumps(said["tags"] or [], separators=(",", ":")),
        "salience": reduce(mul, factors, salience),
        "access_count": len(record["accesses"]),
        "last_accessed": max(record["accesses"], default=None),
        "archived_at": record["archived_at"],
    }


def core_memory(events):
    """The value of each (section, key)."""
    values = {}
    for event in events:
        key = event.get("section"), event.get("key")
        if event["type"] == "core_memory_updated":
            values[key] = event["value"]
        elif event["type"] == "core_memory_deleted":
            values.pop(key, None)
    return values


def facts(events):
    """The value of each (chat_id, topic_key, kind, rank)."""
    values = {}
    for event in events:
        chat, topic = event.get("chat_id") or "", event.get("topic_key")
        kind, rank = event.get("kind"), event.get("rank")
        if event["type"] == "fact_stored":
            rest = event.get("rest")
            if rest is not None:
                values = {key: value for key, value in values.items() if key[:3] != (chat, topic, "ranked")}
            for place, value in enumerate((event["value"], *(rest or ())), rank or 0):
                values[chat, topic, kind or "single", place] = value
        elif event["type"] == "fact_removed":
            gone = [
                key
                for key in values
                if key[:2] == (chat, topic) and kind in (None, key[2]) and rank in (None, key[3])
            ]
            for key in gone:
                del values[key]
    return values


def documents(events):
    """The kind of each source that is registered; the content, and the kind, of each document that stands."""
    kinds, contents = {}, {}
    for event in events:
        source = event.get("source_id")
        match event["type"]:
            case "source_registered":
                kinds[source] = event.get("kind", "docs")
            case "source_removed":
                kinds.pop(source, None)
                contents = {key: content for key, content in contents.items() if key[0] != source}
            case "document_indexed":
                contents[source, event["file"]] = event.get("content", "")
            case "document_removed":
                contents.pop((source, event["file"]), None)
    return kinds, {
        f"{source}/{file}": (content, kinds.get(source, "docs"))
        for (source, file), content in contents.items()
    }
