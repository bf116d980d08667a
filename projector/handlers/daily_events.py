"""Daily events, and which memories they were distilled into."""

from collections.abc import Sequence

from memlog.eventlog.events import DailyEventRecorded, DailyEventsCompressed
from memlog.projector.handlers.accepted import Placed, as_json
from memlog.projector.passages import index
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.passages.index import Whole
from memlog.projector.rows import insert
from memlog.projector.sqlite import Connection


def fold(db: Connection, events: Sequence[Placed], sizes: ChunkSizes) -> None:
    """Add daily events with their passages, and marks of compression."""
    rows, wholes, compressions, distillates = [], [], [], []
    for placed in events:
        said, stream, ts = placed.event, placed.stream, placed.ts
        if isinstance(said, DailyEventRecorded):
            day = said.event_date or ts.partition("T")[0]
            chat = None if said.extraction is None else said.extraction.chat_id
            row = (stream, said.id, day, said.channel, said.sender_id, chat, said.summary, said.raw_tokens)
            rows.append((*row, ts))
            # A question may name its day.
            midnight = f"{day}T00:00:00.000Z"
            wholes.append(Whole(stream, placed.id, "daily_event", said.summary, ts, midnight, label=day))
        elif isinstance(said, DailyEventsCompressed):
            compressions += [(stream, compressed, placed.id, ts) for compressed in dict.fromkeys(said.ids)]
            distillates.append((stream, placed.id, as_json(said.memory_ids)))
    columns = "stream, id, event_date, channel, sender_id, chat_id, summary, raw_tokens, created_at"
    insert(db, "daily_events", columns, rows)
    index.add(db, "daily_event_id", wholes, sizes)
    insert(db, "daily_compressions", "stream, daily_event_id, event_id, ts", compressions)
    insert(db, "daily_distillates", "stream, event_id, memory_ids", distillates)
