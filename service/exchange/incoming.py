"""Filters records before an import: leaves out records imported before, and memlog's own contexts."""

from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b

import msgspec
from msgspec.structs import replace

from memlog.eventlog.events import Event, Message
from memlog.eventlog.fields import Chat
from memlog.query.context.escaping import FIRST_LINE, LAST_LINE
from memlog.service.exchange.formats import Record, Skipped, Used

_MOST_REMEMBERED = 200_000
_MARK_BYTES = 16

_LONGEST_CONTEXT = 200_000
"""The maximum length of a compared block, in characters: a text made of first lines takes seconds."""


class ImportedRecords:
    """The records that this process has imported, and skips when it reads a file again that has grown."""

    def __init__(self) -> None:
        self._known: set[bytes] = set()

    def add(self, store: str, record: Used) -> bool:
        """Add a record imported into a store, and return whether it is new."""
        if len(self._known) > _MOST_REMEMBERED:
            self.clear()
        count = len(self._known)
        data = msgspec.msgpack.encode((store, record))
        self._known.add(blake2b(data, digest_size=_MARK_BYTES).digest())
        return len(self._known) > count

    def clear(self) -> None:
        """Forget all records, since an import may have failed before it stored them."""
        self._known.clear()


IsGiven = Callable[[str, str], bool]
"""Returns whether a chat, such as `codex:7`, was given a block of text as a context."""


def cut_given_contexts(records: Iterable[Record], is_given: IsGiven) -> Iterator[Record]:
    """Yield the records without the contexts that were given to their chats; see `ContextGiven`.

    Otherwise a memory would be stored again as a message each time it is given to an agent. Text that only
    looks like a context stays. Messages that contain only contexts are skipped.
    """
    for record in records:
        if not isinstance(record, Used) or not any(map(_may_have_context, record.events)):
            yield record
            continue
        events = [_cut_contexts(event, is_given) for event in record.events]
        kept = [event for event in events if not isinstance(event, Message) or event.content.strip()]
        yield record._replace(events=kept) if kept else Skipped("context")


def _may_have_context(event: Event) -> bool:
    return isinstance(event, Message) and FIRST_LINE in event.content


def _cut_contexts(event: Event, is_given: IsGiven) -> Event:
    if not isinstance(event, Message) or FIRST_LINE not in event.content:
        return event
    chat, text = str(Chat(event.channel, event.chat_id)), event.content
    start = text.find(FIRST_LINE)
    while start >= 0:
        # Within an entry, a line that looks like the last one is escaped.
        last = text.find(f"\n{LAST_LINE}", start, start + _LONGEST_CONTEXT)
        end = last + 1 + len(LAST_LINE)
        if last > 0 and is_given(chat, text[start:end]):
            text = text[:start] + text[end:].removeprefix("\n")
        else:
            start += len(FIRST_LINE)
        start = text.find(FIRST_LINE, start)
    return replace(event, content=text)
