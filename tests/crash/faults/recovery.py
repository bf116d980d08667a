"""What must hold of a log after a power cut, whatever the cut has left."""

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from pathlib import Path

from memlog.eventlog.errors import MemlogError
from memlog.eventlog.events import Message
from memlog.eventlog.integrity.scrub import erase_lines, find_lines_to_erase, find_unfinished_segments
from memlog.eventlog.integrity.seal_close import seal_unsealed_segments
from memlog.eventlog.integrity.seal_file import SealFiles, read_seals
from memlog.eventlog.integrity.seal_losses import find_altered_segments, find_losses
from memlog.eventlog.log.layout import FORMAT
from memlog.eventlog.log.reader import LogEntry, read_accepted_events, read_redacted_keys
from memlog.eventlog.log.streams import list_segments
from memlog.eventlog.log.writer import Log

NEXT, AFTER_NEXT = "next", "after-next"
"""The ids of the events that are appended after a cut, and after a second one."""

SECRET = "canary"
"""The content of an event that is forgotten."""


def message(event_id: str, content: str = "tea") -> Message:
    """An event to submit."""
    return Message(id=event_id, channel="x", chat_id="1", role="user", content=content)


def log_problems(
    store: Path, submitted: Mapping[str, Message], acknowledged: Iterable[str], following: str = NEXT
) -> list[str]:
    """Append one more event, read the log, and say what is wrong; nothing where all is well."""
    before = log_bytes(store)
    try:
        (position,) = Log(store).append([message(following)])
    except MemlogError as error:
        return [f"the next append failed: {error.message}"]
    after = log_bytes(store)
    changed = [path.name for path, data in before.items() if not after[path].startswith(data)]
    line = after[store / "log" / position.stream / position.segment][position.offset :].partition(b"\n")[0]
    return [
        *[f"what stood in {name} stands there no more" for name in changed],
        *([] if f'"id":"{following}"'.encode() in line else ["the next event is not where it is said to be"]),
        *seal_problems(store),
        *scrub_problems(store),
        *event_problems(store, {**submitted, following: message(following)}, {*acknowledged, following}),
    ]


def event_problems(store: Path, submitted: Mapping[str, Message], acknowledged: Iterable[str]) -> list[str]:
    """What is wrong with the events of a log: all that were acknowledged must stand, once, and no others."""
    conflicts: list[str] = []

    def leave_out(entry: LogEntry, why: str) -> None:
        if why == "conflict":
            conflicts.append(entry.position)

    events = [entry.event for entry in read_accepted_events(list_segments(store / "log")[0], leave_out)]
    found = {event.id: event for event in events if isinstance(event, Message)}
    return [
        *[f"{each} was acknowledged, and is lost" for each in sorted({*acknowledged} - found.keys())],
        *[f"{each} was never submitted" for each in sorted(found.keys() - submitted.keys())],
        *[f"{each} says something else" for each in found if _differs(found[each], submitted.get(each))],
        *[f"{each} is doubled" for each, count in Counter(event.id for event in events).items() if count > 1],
        *[f"two events of one id: {each}" for each in conflicts],
    ]


def scrub_all(store: Path) -> None:
    """Overwrite what was redacted, as `memlog scrub` does, but for the read model."""
    segments = list_segments(store / "log")[0]
    redacted = read_redacted_keys(segments)
    seals = SealFiles(store / "log")
    for segment, lines in dict(find_lines_to_erase(segments, redacted)).items():
        erase_lines(segment, lines, redacted, seals=seals, lock_timeout=1, around=lambda _: nullcontext())
    for segment in find_unfinished_segments(segments):
        seals.reseal(*segment.stream_and_filename, lock_timeout=1)


def scrub_problems(store: Path) -> list[str]:
    """Where the secret stands in spite of its redaction: a scrub that was cut is finished by the next one."""
    if not read_redacted_keys(list_segments(store / "log")[0]):
        return []
    scrub_all(store)
    holding = [path.name for path, data in log_bytes(store).items() if SECRET.encode() in data]
    return [f"{name} holds what was scrubbed" for name in holding]


def seal_problems(store: Path) -> list[str]:
    """What is wrong with the seals: what was sealed stands as it was, and the next seal can be made."""
    if not any((store / "log").glob("seals*.jsonl")):
        return []
    seal_unsealed_segments(store)
    found = read_seals(store / "log").damaged_lines
    return [
        *[f"line {line.number} of the seals: {line.damage}" for line in found if line.damage != "torn"],
        *[f"{loss.segment} is lost: {loss.description}" for loss in find_losses(store / "log")],
        *[
            f"{each.seal.segment} is unlike its seal: {each.description}"
            for each in find_altered_segments(store / "log")
        ],
    ]


def log_bytes(store: Path) -> dict[Path, bytes]:
    """What stands in each file of the log; a draft of FORMAT, which is written anew, is none."""
    files = [path for path in (store / "log").rglob("*") if path.is_file()]
    return {path: path.read_bytes() for path in files if path.name != f".{FORMAT}.draft"}


def _differs(found: Message, submitted: Message | None) -> bool:
    return submitted is not None and found.content != submitted.content
