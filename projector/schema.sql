-- The read model. Made from the log by `memlog project --from-scratch`, and by nothing else: there are no
-- migrations, since another schema has another projection id and so another file.
--
-- Every table carries the stream that its rows come from: a stream is what is replayed when its history
-- was rewritten. "Order" columns (ts, segment_no, offset) decide which of two events wins, whatever the
-- order in which they arrived.

-- A row per accepted event. Two lines of one stream with one id are one event.
CREATE TABLE events (
    stream          TEXT NOT NULL,     -- conversations/telegram_7
    id              TEXT NOT NULL,
    type            TEXT NOT NULL,
    ts              TEXT NOT NULL,     -- when it happened
    at              TEXT,              -- when memlog appended it; null for a foreign line
    segment         TEXT NOT NULL,     -- the file's name: 2026-02-24.jsonl
    segment_no      INTEGER NOT NULL,  -- the same, so that it sorts: 202602240000
    offset          INTEGER NOT NULL,  -- of the line's first byte
    length          INTEGER NOT NULL,  -- of the line in bytes, without its newline
    line            INTEGER NOT NULL,  -- its number in the file, from 1
    content_sha256  BLOB NOT NULL,     -- of what it says, without the envelope
    PRIMARY KEY (stream, id)
) WITHOUT ROWID;

-- A row per line whose id stands at an earlier position of its stream with other content.
CREATE TABLE conflicts (
    stream          TEXT NOT NULL,
    id              TEXT NOT NULL,
    segment         TEXT NOT NULL,
    offset          INTEGER NOT NULL,
    length          INTEGER NOT NULL,
    line            INTEGER NOT NULL,
    content_sha256  BLOB NOT NULL,
    PRIMARY KEY (stream, segment, offset)
) WITHOUT ROWID;

-- A row per line whose id stands at an earlier position of its stream with the same content: a retry.
CREATE TABLE duplicates (
    stream   TEXT NOT NULL,
    id       TEXT NOT NULL,
    segment  TEXT NOT NULL,
    offset   INTEGER NOT NULL,
    PRIMARY KEY (stream, segment, offset)
) WITHOUT ROWID;

-- A row per line that could not be projected. Its bytes stay where they are.
CREATE TABLE quarantine (
    stream   TEXT NOT NULL,
    segment  TEXT NOT NULL,
    offset   INTEGER NOT NULL,
    length   INTEGER NOT NULL,
    line     INTEGER NOT NULL,
    reason   TEXT NOT NULL,     -- memlog.eventlog.line.Reason
    sha256   BLOB,              -- of the line; null where it was too long to be loaded
    PRIMARY KEY (stream, segment, offset)
) WITHOUT ROWID;

-- A row per segment: how far the read model has come, and what it read. Not in the digest.
CREATE TABLE checkpoints (
    stream    TEXT NOT NULL,
    segment   TEXT NOT NULL,
    offset    INTEGER NOT NULL,  -- what stands before it was projected
    lines     INTEGER NOT NULL,  -- that end before the offset
    is_open   INTEGER NOT NULL,  -- 1 where the last of them had no newline, so that it must not grow
    tail      BLOB NOT NULL,     -- memlog.eventlog.segment.Fingerprint
    chain     BLOB NOT NULL,
    rest      BLOB NOT NULL,
    size      INTEGER NOT NULL,  -- of the file when it was last looked at: with inode and mtime_ns a hint
    inode     INTEGER NOT NULL,  -- that nothing has changed
    mtime_ns  INTEGER NOT NULL,
    PRIMARY KEY (stream, segment)
) WITHOUT ROWID;

-- Names and values of this file: projection_id, vector_model. Not in the digest.
CREATE TABLE meta (
    name   TEXT PRIMARY KEY,
    value  TEXT NOT NULL
) WITHOUT ROWID;

-- A row per message and per session break. The rowid serves the full text alone.
CREATE TABLE messages (
    message_no  INTEGER PRIMARY KEY,
    stream      TEXT NOT NULL,
    id          TEXT NOT NULL,     -- of the event
    channel     TEXT NOT NULL,
    chat_id     TEXT NOT NULL,
    role        TEXT CHECK (role IN ('user', 'assistant', 'system', 'tool')),
    type        TEXT NOT NULL CHECK (type IN ('message', 'subagent_result', 'session_break')),
    name        TEXT,              -- of the speaker
    content     TEXT NOT NULL,
    metadata    TEXT,              -- JSON: the event's meta; of a session break {"model": …}
    created_at  TEXT NOT NULL,     -- the event's ts
    segment_no  INTEGER NOT NULL,
    offset      INTEGER NOT NULL,
    CHECK ((role IS NULL) = (type = 'session_break'))
);
CREATE UNIQUE INDEX messages_by_id ON messages (stream, id);
CREATE INDEX messages_by_chat ON messages (channel, chat_id, created_at DESC);

-- A row per memory: what its latest memory_saved says.
CREATE TABLE memories (
    memory_id      TEXT PRIMARY KEY,
    stream         TEXT NOT NULL,
    event_id       TEXT NOT NULL,     -- of the event whose content stands here
    title          TEXT NOT NULL,
    content        TEXT NOT NULL,
    category       TEXT NOT NULL,
    kind           TEXT NOT NULL CHECK (kind IN ('fact', 'preference', 'insight')),
    importance     REAL NOT NULL CHECK (importance BETWEEN 0 AND 1),
    salience       REAL NOT NULL DEFAULT 1.0 CHECK (salience BETWEEN 0 AND 1),
    access_count   INTEGER NOT NULL DEFAULT 0,
    last_accessed  TEXT,
    source         TEXT NOT NULL,
    topic          TEXT,
    chat_id        TEXT,              -- channel:chat_id; null for the store's own scope
    tags           TEXT NOT NULL,     -- a JSON list
    created_at     TEXT NOT NULL,     -- ts of the first memory_saved
    updated_at     TEXT NOT NULL,     -- ts of the event whose content stands here
    segment_no     INTEGER NOT NULL,
    offset         INTEGER NOT NULL
);
CREATE INDEX memories_by_category ON memories (category);
CREATE INDEX memories_by_salience ON memories (salience);
CREATE INDEX memories_by_update ON memories (updated_at);

-- A row per passage that is embedded: of a message (source `conversation`) or of a memory.
-- AUTOINCREMENT: a number is never used twice, so a vector that is computed while rows change cannot
-- land on another passage.
CREATE TABLE memory_chunks (
    chunk_no     INTEGER PRIMARY KEY AUTOINCREMENT,
    stream       TEXT NOT NULL,
    memory_id    TEXT REFERENCES memories (memory_id) ON DELETE CASCADE,
    message_id   TEXT,
    chunk_index  INTEGER NOT NULL,  -- 0 for the first passage of its memory or message
    source       TEXT NOT NULL,
    chat_id      TEXT,              -- channel:chat_id
    section      TEXT,              -- the Markdown headings above it, joined by ` > `
    label        TEXT,              -- indexed and embedded with it: the speaker, or the memory's own title
    content      TEXT NOT NULL,
    start_char   INTEGER NOT NULL,  -- in the content of its memory or message, in code points
    end_char     INTEGER NOT NULL,
    created_at   TEXT NOT NULL,
    updated_at   TEXT NOT NULL,
    CHECK ((memory_id IS NULL) <> (message_id IS NULL)),
    FOREIGN KEY (stream, message_id) REFERENCES messages (stream, id) ON DELETE CASCADE
);
CREATE INDEX memory_chunks_by_memory ON memory_chunks (memory_id) WHERE memory_id IS NOT NULL;
CREATE INDEX memory_chunks_by_message ON memory_chunks (stream, message_id);

-- A row per passage that has no vector yet. Not in the digest.
CREATE TABLE embed_queue (
    chunk_no  INTEGER PRIMARY KEY REFERENCES memory_chunks (chunk_no) ON DELETE CASCADE
);

-- A row per key that was ever set. A deleted one keeps its row, with no value, since an older value may
-- still arrive.
CREATE TABLE core_memory (
    section     TEXT NOT NULL CHECK (section IN ('user', 'agent')),
    key         TEXT NOT NULL,
    stream      TEXT NOT NULL,
    value       TEXT,
    updated_at  TEXT NOT NULL,
    segment_no  INTEGER NOT NULL,
    offset      INTEGER NOT NULL,
    PRIMARY KEY (section, key)
) WITHOUT ROWID;

-- Full text, one table for whole messages and one for the chunks of memories. Contentless: the text
-- stands above. Fed with analysed text (memlog.projector.analysis); an entry is removed by FTS5's 'delete'
-- command with the values it was made from, so that ranking statistics stay those of a fresh index.
-- https://www.sqlite.org/fts5.html#contentless_tables
CREATE VIRTUAL TABLE messages_fts USING fts5 (
    content, content = '', tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE memory_chunks_fts USING fts5 (
    content, content = '', tokenize = 'porter unicode61 remove_diacritics 2'
);

-- The vectors stand in `vec_memory`, a vec0 table that memlog.projector.vectors makes when an embedder is
-- there, since its dimension is the model's: rowid = chunk_no, embedding float[dimension].
