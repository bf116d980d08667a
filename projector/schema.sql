-- The read model, made from the log. There are no migrations: another schema has another projection id, and so
-- another file.
--
-- Every table has the stream of its rows: if the history of a stream is rewritten, the stream is replayed.
--
-- Windows and lists are in the order of (ts, day, number, writer, offset): the time of the event, then its
-- position, which is the day, number and writer of its segment, and its offset. Of two changes of one thing
-- the one with the greater `precedence` holds, in whatever order they arrive: a text made of its time of
-- precedence (docs/storage/jsonl-format.md, "The order of changes") and its position. When an event arrives
-- late, rows of other tables are computed again from `versions`, `tombstones` and `decays`.

-- A row per accepted event. Two lines of a stream with the same id are one event.
CREATE TABLE events (
    stream          TEXT NOT NULL,     -- conversations/telegram_7
    id              TEXT NOT NULL,
    type            TEXT NOT NULL,
    ts              TEXT NOT NULL,     -- when it happened
    at              TEXT,              -- when memlog appended it; null for a foreign line
    day             TEXT NOT NULL,     -- of its segment: 2026-11-23
    number          INTEGER NOT NULL,  -- of its segment; 0 where its name has none
    writer          TEXT NOT NULL,     -- of its segment; '' for a plain name
    offset          INTEGER NOT NULL,  -- of the line's first byte
    length          INTEGER NOT NULL,  -- of the line in bytes, without its newline
    line            INTEGER NOT NULL,  -- its number in the file, from 1
    content_sha256  BLOB NOT NULL,     -- of what it says, without the envelope
    -- the file's name: 2026-11-23.k7f3qz.0001.jsonl
    segment         TEXT NOT NULL AS (
        day || CASE writer WHEN '' THEN '' ELSE '.' || writer END
        || CASE number WHEN 0 THEN '' ELSE printf('.%04d', number) END || '.jsonl'
    ),
    PRIMARY KEY (stream, id)
) WITHOUT ROWID;

-- A row per line that repeats the id of an earlier line of its stream with other content.
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

-- A row per line that repeats the id of an earlier line of its stream with the same content: a retry.
CREATE TABLE duplicates (
    stream   TEXT NOT NULL,
    id       TEXT NOT NULL,
    segment  TEXT NOT NULL,
    offset   INTEGER NOT NULL,
    PRIMARY KEY (stream, segment, offset)
) WITHOUT ROWID;

-- A row per line that redacts an event. No line with the id of that event is projected in its stream.
CREATE TABLE redactions (
    stream     TEXT NOT NULL,
    target_id  TEXT NOT NULL,
    id         TEXT NOT NULL,     -- of the redaction
    reason     TEXT,
    ts         TEXT NOT NULL,
    segment    TEXT NOT NULL,
    offset     INTEGER NOT NULL,
    PRIMARY KEY (stream, target_id, segment, offset)
) WITHOUT ROWID;

-- A row per line that could not be projected. Its bytes stay where they are.
CREATE TABLE quarantine (
    stream   TEXT NOT NULL,
    segment  TEXT NOT NULL,
    offset   INTEGER NOT NULL,
    length   INTEGER NOT NULL,
    line     INTEGER NOT NULL,
    reason   TEXT NOT NULL,     -- memlog.eventlog.errors.LineFault
    sha256   BLOB,              -- of the line; null where it was too long to be loaded
    PRIMARY KEY (stream, segment, offset)
) WITHOUT ROWID;

-- A row per run of NUL bytes before or behind a line, which is read without them. A file system leaves them in
-- place of data that a power cut kept from being written.
CREATE TABLE nul_runs (
    stream   TEXT NOT NULL,
    segment  TEXT NOT NULL,
    offset   INTEGER NOT NULL,
    length   INTEGER NOT NULL,  -- in bytes
    line     INTEGER NOT NULL,
    PRIMARY KEY (stream, segment, offset)
) WITHOUT ROWID;

-- A row per event whose text was too long to look at its form, and is indexed by its words, in windows or as
-- one passage; or whose list was too long to be stored whole (memlog.projector.limits).
CREATE TABLE plain_texts (
    stream  TEXT NOT NULL,
    id      TEXT NOT NULL,     -- of the event
    reason  TEXT NOT NULL CHECK (reason IN ('long_text', 'long_names', 'long_list')),
    PRIMARY KEY (stream, id)
) WITHOUT ROWID;

-- A row per segment: how far the read model has come, and what it read. Not in the digest.
CREATE TABLE checkpoints (
    stream    TEXT NOT NULL,
    segment   TEXT NOT NULL,
    offset    INTEGER NOT NULL,  -- the bytes before it were projected
    lines     INTEGER NOT NULL,  -- that end before the offset
    is_open   INTEGER NOT NULL,  -- 1 where the last of them had no newline, in a segment that gets no more
    tail      BLOB NOT NULL,     -- memlog.eventlog.log.reader.Fingerprint
    chain     BLOB NOT NULL,
    rest      BLOB NOT NULL,
    size      INTEGER NOT NULL,  -- of the file when it was last looked at: with inode and times a hint
    inode     INTEGER NOT NULL,  -- that nothing has changed
    mtime_ns  INTEGER NOT NULL,
    ctime_ns  INTEGER NOT NULL,
    PRIMARY KEY (stream, segment)
) WITHOUT ROWID;

-- Names and values of this file: projection_id, vector_model, the last numbers of passages. Not in the digest.
CREATE TABLE meta (
    name   TEXT PRIMARY KEY,
    value  TEXT NOT NULL
) WITHOUT ROWID;

-- A row per current message and per session break. Only the full text uses the rowid. (Checks with OR: with IN each
-- takes 1.3 microseconds a row, a tenth of the load.)
CREATE TABLE messages (
    message_no  INTEGER PRIMARY KEY,
    stream      TEXT NOT NULL,
    id          TEXT NOT NULL,     -- of the event
    channel     TEXT NOT NULL,
    chat_id     TEXT NOT NULL,
    role        TEXT CHECK (role = 'user' OR role = 'assistant' OR role = 'system' OR role = 'tool'),
    type        TEXT NOT NULL
                CHECK (type = 'message' OR type = 'subagent_result' OR type = 'session_break'),
    name        TEXT,              -- of the speaker
    content     TEXT NOT NULL,
    metadata    TEXT,              -- JSON: the event's meta; of a session break {"model": …}
    created_at  TEXT NOT NULL,     -- the event's ts
    day         TEXT NOT NULL,
    number      INTEGER NOT NULL,
    writer      TEXT NOT NULL,
    offset      INTEGER NOT NULL,
    CHECK ((role IS NULL) = (type = 'session_break'))
);
CREATE UNIQUE INDEX messages_by_id ON messages (stream, id);
CREATE INDEX messages_by_chat
    ON messages (
        channel, chat_id, created_at DESC, day DESC, number DESC, writer DESC, offset DESC, stream DESC
    );
-- Who talks to the agent, and where.
CREATE INDEX messages_by_user ON messages (name, channel, chat_id) WHERE role = 'user' AND name <> '';

-- A row per message that is not current: it is neither read nor searched until an event restores it.
CREATE TABLE withdrawn_messages (
    message_no  INTEGER PRIMARY KEY,  -- and the columns of `messages`
    stream      TEXT NOT NULL,
    id          TEXT NOT NULL,
    channel     TEXT NOT NULL,
    chat_id     TEXT NOT NULL,
    role        TEXT NOT NULL,
    type        TEXT NOT NULL,
    name        TEXT,
    content     TEXT NOT NULL,
    metadata    TEXT,
    created_at  TEXT NOT NULL,
    day         TEXT NOT NULL,
    number      INTEGER NOT NULL,
    writer      TEXT NOT NULL,
    offset      INTEGER NOT NULL,
    state       TEXT NOT NULL CHECK (state = 'superseded' OR state = 'rewound' OR state = 'deleted')
);
CREATE UNIQUE INDEX withdrawn_messages_by_id ON withdrawn_messages (stream, id);

-- A row per event that changes a message, which may be missing: its line may arrive later.
CREATE TABLE message_changes (
    stream      TEXT NOT NULL,
    message_id  TEXT NOT NULL,
    event_id    TEXT NOT NULL,
    content     TEXT,              -- null: unchanged
    state       TEXT,              -- null: unchanged
    precedence  TEXT NOT NULL,
    PRIMARY KEY (stream, message_id, precedence)
) WITHOUT ROWID;

-- A row per member of a chat's description, as the latest event set it.
CREATE TABLE chat_descriptions (
    stream      TEXT NOT NULL,
    channel     TEXT NOT NULL,
    chat_id     TEXT NOT NULL,
    member      TEXT NOT NULL,
    value       TEXT NOT NULL,     -- JSON
    event_id    TEXT NOT NULL,
    precedence  TEXT NOT NULL,
    PRIMARY KEY (stream, member)
) WITHOUT ROWID;

-- A view with a row per session: the part of a chat between two session breaks.
CREATE VIEW sessions AS
WITH numbered AS (
    SELECT channel, chat_id, id, type, created_at,
        CASE json_type(metadata, '$.model') WHEN 'text' THEN metadata ->> '$.model' END AS model,
        row_number() OVER chat AS place,
        sum(type = 'session_break') OVER chat AS session_no   -- 0 before the first break
    FROM messages
    WINDOW chat AS (
        PARTITION BY channel, chat_id ORDER BY created_at, day, number, writer, offset, stream
        ROWS UNBOUNDED PRECEDING
    )
),
bounds AS (
    SELECT channel, chat_id, session_no, min(created_at) AS created_at,
        count(*) FILTER (WHERE type <> 'session_break') AS messages,
        min(place) FILTER (WHERE type <> 'session_break') AS first_place,
        -- The model that the break names, else that of the last message that names one.
        coalesce(
            min(place) FILTER (WHERE type = 'session_break' AND model IS NOT NULL),
            max(place) FILTER (WHERE model IS NOT NULL)
        ) AS model_place
    FROM numbered
    GROUP BY channel, chat_id, session_no
)
SELECT b.channel, b.chat_id, b.session_no, m.model,
    f.id AS session_start,      -- of its first message; null where there is none yet
    b.created_at, b.messages
FROM bounds b
LEFT JOIN numbered f ON (f.channel, f.chat_id, f.place) = (b.channel, b.chat_id, b.first_place)
LEFT JOIN numbered m ON (m.channel, m.chat_id, m.place) = (b.channel, b.chat_id, b.model_place);

-- A row per summary of a stretch of a conversation.
CREATE TABLE summaries (
    stream           TEXT NOT NULL,
    id               TEXT NOT NULL,     -- of the event
    channel          TEXT NOT NULL,
    chat_id          TEXT NOT NULL,
    from_message_id  TEXT,              -- the first message that it is about
    to_message_id    TEXT,              -- the last one
    content          TEXT NOT NULL,
    is_distilled     INTEGER NOT NULL,  -- whether a language model wrote it
    position         TEXT NOT NULL,     -- of its line: 2026-11-23.k7f3qz.jsonl:1042
    created_at       TEXT NOT NULL,
    day              TEXT NOT NULL,
    number           INTEGER NOT NULL,
    writer           TEXT NOT NULL,
    offset           INTEGER NOT NULL,
    PRIMARY KEY (stream, id)
);
CREATE INDEX summaries_by_chat ON summaries (channel, chat_id, created_at DESC);

-- A row per extraction: the messages of a conversation behind the latest one are its buffer.
CREATE TABLE extractions (
    stream              TEXT NOT NULL,
    id                  TEXT NOT NULL,
    channel             TEXT NOT NULL,
    chat_id             TEXT NOT NULL,
    through_message_id  TEXT NOT NULL,
    created_at          TEXT NOT NULL,
    day                 TEXT NOT NULL,
    number              INTEGER NOT NULL,
    writer              TEXT NOT NULL,
    offset              INTEGER NOT NULL,
    PRIMARY KEY (stream, id)
) WITHOUT ROWID;

-- A row per event that closes what a language model distilled: memories_extracted, memories_merged,
-- profile_refreshed.
CREATE TABLE closed_extractions (
    stream      TEXT NOT NULL,
    id          TEXT NOT NULL,
    type        TEXT NOT NULL,
    chat_id     TEXT,               -- channel:chat_id
    model       TEXT,
    prompt      TEXT,
    tokens_in   INTEGER NOT NULL,
    tokens_out  INTEGER NOT NULL,
    refused     INTEGER NOT NULL,
    ts          TEXT NOT NULL,
    PRIMARY KEY (stream, id)
) WITHOUT ROWID;

-- A row per content of a memory that was compared with others, or went into the profile.
CREATE TABLE compared_contents (
    stream         TEXT NOT NULL,
    event_id       TEXT NOT NULL,   -- of the event with the content
    extraction_id  TEXT NOT NULL,
    PRIMARY KEY (stream, event_id, extraction_id)
) WITHOUT ROWID;

-- A row per decision of a memories_merged.
CREATE TABLE merge_decisions (
    stream         TEXT NOT NULL,
    extraction_id  TEXT NOT NULL,
    number         INTEGER NOT NULL,
    relation       TEXT NOT NULL,
    memory_ids     TEXT NOT NULL,   -- a JSON list, the oldest first
    event_ids      TEXT NOT NULL,   -- a JSON list: of the events with the contents that were compared
    memory_id      TEXT,            -- of the one that stands for all; null where a person is to decide
    proposal_id    TEXT,            -- of the memory with the text that a person is to accept or not
    ts             TEXT NOT NULL,
    PRIMARY KEY (stream, extraction_id, number)
) WITHOUT ROWID;

-- A row per model_failed.
CREATE TABLE model_failures (
    stream      TEXT NOT NULL,
    id          TEXT NOT NULL,
    task        TEXT NOT NULL,
    chat_id     TEXT,               -- channel:chat_id
    event_ids   TEXT NOT NULL,      -- a JSON list: of what was sent
    provider    TEXT NOT NULL,
    model       TEXT NOT NULL,
    kind        TEXT NOT NULL,
    why         TEXT NOT NULL,
    requests    INTEGER NOT NULL,
    tokens_in   INTEGER NOT NULL,
    tokens_out  INTEGER NOT NULL,
    ts          TEXT NOT NULL,
    PRIMARY KEY (ts, stream, id)    -- those of a day are read
) WITHOUT ROWID;

-- A row per job_completed.
CREATE TABLE job_runs (
    stream  TEXT NOT NULL,
    id      TEXT NOT NULL,
    job     TEXT NOT NULL,
    period  TEXT NOT NULL,          -- the local day for which it was due
    steps   TEXT NOT NULL,          -- JSON
    ts      TEXT NOT NULL,
    PRIMARY KEY (stream, id)
) WITHOUT ROWID;

-- A row per message that an extraction covers: all other messages of a chat are its buffer.
CREATE TABLE extracted_messages (
    chat_id        TEXT NOT NULL,
    message_id     TEXT NOT NULL,
    stream         TEXT NOT NULL,
    extraction_id  TEXT NOT NULL,
    PRIMARY KEY (chat_id, message_id, stream, extraction_id)
) WITHOUT ROWID;
CREATE INDEX extracted_messages_by_extraction ON extracted_messages (stream, extraction_id);

-- A row per event of an extraction that nothing closes: it counts once there is a row in closed_extractions.
CREATE TABLE held_events (
    stream         TEXT NOT NULL,
    extraction_id  TEXT NOT NULL,
    id             TEXT NOT NULL,   -- of the event
    event          TEXT NOT NULL,   -- JSON
    PRIMARY KEY (stream, extraction_id, id)
) WITHOUT ROWID;

-- A row per field of a memory and event that set it. The field `saved` holds all fields of a memory_saved.
CREATE TABLE versions (
    stream      TEXT NOT NULL,
    memory_id   TEXT NOT NULL,
    field       TEXT NOT NULL,
    value       TEXT NOT NULL,     -- JSON
    event_id    TEXT NOT NULL,
    ts          TEXT NOT NULL,
    precedence  TEXT NOT NULL,
    PRIMARY KEY (stream, memory_id, field, precedence)
) WITHOUT ROWID;

-- A row per event that a change_undone takes back.
CREATE TABLE undone_events (
    stream      TEXT NOT NULL,
    target_id   TEXT NOT NULL,     -- of what is taken back
    id          TEXT NOT NULL,     -- of the change_undone
    precedence  TEXT NOT NULL,
    PRIMARY KEY (stream, target_id, id)
) WITHOUT ROWID;

-- A view with a row per field of a memory that holds: of the newest event that set it and was not taken back.
CREATE VIEW current_versions AS
SELECT * FROM versions v
WHERE NOT EXISTS (SELECT 1 FROM undone_events u WHERE (u.stream, u.target_id) = (v.stream, v.event_id))
AND NOT EXISTS (
    SELECT 1 FROM versions n
    WHERE (n.stream, n.memory_id, n.field) = (v.stream, v.memory_id, v.field) AND n.precedence > v.precedence
    AND NOT EXISTS (SELECT 1 FROM undone_events u WHERE (u.stream, u.target_id) = (n.stream, n.event_id))
);

-- A row per thing that was ever deleted, with the newest event that did it: nothing older is kept.
-- thing: in `memory` a memory_id; in `core` and `facts` the key as a JSON list, with null for "all of them";
-- in `documents` a source_id, or source_id/file.
CREATE TABLE tombstones (
    stream      TEXT NOT NULL,
    thing       TEXT NOT NULL,
    source      TEXT,              -- of a key of the core memory: who removed it
    precedence  TEXT NOT NULL,
    PRIMARY KEY (stream, thing)
) WITHOUT ROWID;

-- A row per salience_decayed: it multiplies the salience of what is older than itself.
CREATE TABLE decays (
    stream      TEXT NOT NULL,
    id          TEXT NOT NULL,
    rates       TEXT NOT NULL,     -- JSON: factors by category
    precedence  TEXT NOT NULL,
    PRIMARY KEY (stream, id)
) WITHOUT ROWID;

-- A row per memory and event that touched it.
CREATE TABLE memory_events (
    memory_id      TEXT NOT NULL,
    stream         TEXT NOT NULL,
    event_id       TEXT NOT NULL,
    precedence     TEXT NOT NULL,
    extraction_id  TEXT,               -- of the event that closes it; null where no model distilled the event
    chat_id        TEXT,               -- channel:chat_id, which it was distilled from
    accesses       INTEGER NOT NULL,   -- that it counts
    reads          INTEGER NOT NULL,   -- those of them in which the memory was given to an agent
    PRIMARY KEY (memory_id, stream, event_id)
) WITHOUT ROWID;

-- A view with a row per event that a merge made of its memories. Older versions named no extraction where no
-- model was called: they are the lines of the append that the line of the merge ends.
CREATE VIEW merge_events AS
SELECT d.stream, d.extraction_id, d.number, t.memory_id, t.event_id, t.precedence, e.type
FROM merge_decisions d
JOIN events c ON (c.stream, c.id) = (d.stream, d.extraction_id)
JOIN memory_events t ON t.stream = d.stream AND t.memory_id IN (
    SELECT value FROM json_each(d.memory_ids) UNION SELECT d.memory_id
)
JOIN events e ON (e.stream, e.id) = (t.stream, t.event_id)
WHERE t.extraction_id = d.extraction_id OR (
    t.extraction_id IS NULL AND e.type IN ('memory_archived', 'memory_updated') AND e.line < c.line
    AND (e.at, e.day, e.number, e.writer) = (c.at, c.day, c.number, c.writer)
);

-- A view with a row per decision of a memories_merged, and whether it was taken back.
CREATE VIEW decisions AS
SELECT d.*, EXISTS (SELECT 1 FROM undone_events) AND EXISTS (
    SELECT 1 FROM merge_events m JOIN undone_events u ON (u.stream, u.target_id) = (m.stream, m.event_id)
    WHERE (m.stream, m.extraction_id, m.number) = (d.stream, d.extraction_id, d.number)
) AS is_undone
FROM merge_decisions d;

-- A row per context_given.
CREATE TABLE contexts_given (
    stream      TEXT NOT NULL,
    id          TEXT NOT NULL,
    chat_id     TEXT,              -- channel:chat_id
    message_id  TEXT,              -- of the asking message
    entries     TEXT NOT NULL,     -- a JSON list
    tokens      TEXT NOT NULL,     -- JSON: by part
    stable      TEXT,              -- a keyed hash of the block with the core memory
    turn        TEXT,              -- a keyed hash of the block with the rest
    ts          TEXT NOT NULL,
    PRIMARY KEY (stream, id)
) WITHOUT ROWID;

-- A row per memory and context_given in which it is one of the two best for its message: no decay of the day
-- lowers its salience.
CREATE TABLE best_in_contexts (
    memory_id  TEXT NOT NULL,
    day        TEXT NOT NULL,      -- of UTC
    stream     TEXT NOT NULL,
    event_id   TEXT NOT NULL,      -- of the context_given
    PRIMARY KEY (memory_id, day, stream, event_id)
) WITHOUT ROWID;

-- A row per thing that a context_given names, by which it is found: an entry, or the asking message.
CREATE TABLE named_in_contexts (
    thing_stream  TEXT NOT NULL,   -- of its event; '' for a memory, `conversations` for a message of no known chat
    thing_id      TEXT NOT NULL,   -- of its event; of a memory its memory_id
    stream        TEXT NOT NULL,
    event_id      TEXT NOT NULL,   -- of the context_given
    PRIMARY KEY (thing_stream, thing_id, stream, event_id)
) WITHOUT ROWID;

-- A row per memory: its latest memory_saved, and what newer events changed.
CREATE TABLE memories (
    memory_id            TEXT PRIMARY KEY,
    stream               TEXT NOT NULL,
    event_id             TEXT NOT NULL,     -- of the event that set the content
    title                TEXT NOT NULL,
    content              TEXT NOT NULL,
    category             TEXT NOT NULL,
    kind                 TEXT NOT NULL CHECK (kind IN ('fact', 'preference', 'insight')),
    importance           REAL NOT NULL CHECK (importance BETWEEN 0 AND 1),
    salience             REAL NOT NULL CHECK (salience BETWEEN 0 AND 1),
    salience_set         REAL NOT NULL,     -- what decays multiply: 1, or what an update set
    salience_precedence  TEXT NOT NULL,     -- only decays of a greater precedence do
    access_count         INTEGER NOT NULL,
    last_accessed        TEXT,
    source               TEXT NOT NULL,
    topic                TEXT,
    chat_id              TEXT,              -- channel:chat_id; null for the store's own scope
    tags                 TEXT NOT NULL,     -- a JSON list
    created_at           TEXT NOT NULL,     -- ts of the first memory_saved
    updated_at           TEXT NOT NULL,     -- ts of the newest event that changed what it says
    holds                INTEGER NOT NULL,  -- in each context: 1 an allergy, 2 health, 4 a preference or prohibition
    archived_at          TEXT               -- an archived memory has no chunks: it is not searched
);
CREATE INDEX memories_by_category ON memories (category, chat_id);
CREATE INDEX memories_by_salience ON memories (salience);
CREATE INDEX memories_by_update ON memories (updated_at);

-- A row per daily event.
CREATE TABLE daily_events (
    stream      TEXT NOT NULL,
    id          TEXT NOT NULL,     -- of the event
    event_date  TEXT NOT NULL,     -- 2026-02-24
    channel     TEXT,
    sender_id   TEXT,
    chat_id     TEXT,              -- channel:chat_id, which it was distilled from
    summary     TEXT NOT NULL,
    raw_tokens  INTEGER,
    created_at  TEXT NOT NULL,
    PRIMARY KEY (stream, id)
);
CREATE INDEX daily_events_by_date ON daily_events (event_date);

-- A row per daily event and event that marks it as distilled.
CREATE TABLE daily_compressions (
    stream          TEXT NOT NULL,
    daily_event_id  TEXT NOT NULL,
    event_id        TEXT NOT NULL,
    ts              TEXT NOT NULL,
    PRIMARY KEY (stream, daily_event_id, event_id)
) WITHOUT ROWID;

-- A row per event that marks daily events as distilled. Apart from the above: one event may name many of both,
-- and all pairs of them would be the square of its length.
CREATE TABLE daily_distillates (
    stream      TEXT NOT NULL,
    event_id    TEXT NOT NULL,
    memory_ids  TEXT NOT NULL,     -- a JSON list: the memories that hold them
    PRIMARY KEY (stream, event_id)
) WITHOUT ROWID;

-- A row per key of the core memory that is set, by people and agents, and by the profile of each group of chats.
CREATE TABLE core_values (
    section        TEXT NOT NULL CHECK (section IN ('user', 'agent')),
    key            TEXT NOT NULL,
    chat_id        TEXT NOT NULL,     -- channel:chat_id of the group; '' for the store's own scope: a key has no null
    stream         TEXT NOT NULL,
    event_id       TEXT NOT NULL,
    value          TEXT NOT NULL,
    source         TEXT NOT NULL,
    is_profile     INTEGER NOT NULL,  -- whether memlog wrote it
    memory_ids     TEXT NOT NULL,     -- a JSON list: the memories that it was made of
    extraction_id  TEXT,           -- of the event that closes the profile; null where a person set it
    updated_at     TEXT NOT NULL,
    precedence     TEXT NOT NULL,
    PRIMARY KEY (section, key, chat_id, is_profile)
) WITHOUT ROWID;

-- A view with a row per key and group: what a person or an agent has set holds, whenever a profile is written.
CREATE VIEW core_memory AS
SELECT * FROM core_values v WHERE NOT is_profile OR NOT EXISTS (
    SELECT 1 FROM core_values o WHERE o.section = v.section AND o.key = v.key AND NOT o.is_profile
);

-- A row per fact; its passages say its content.
CREATE TABLE facts (
    chat_id            TEXT NOT NULL,     -- channel:chat_id; '' for the store's own scope: a key has no null
    topic_key          TEXT NOT NULL,
    kind               TEXT NOT NULL CHECK (kind IN ('ranked', 'single')),
    rank               INTEGER NOT NULL CHECK ((rank = 0) = (kind = 'single')),
    stream             TEXT NOT NULL,
    event_id           TEXT NOT NULL,
    value              TEXT NOT NULL,
    source_message_id  TEXT,
    updated_at         TEXT NOT NULL,
    precedence         TEXT NOT NULL,
    -- favorite_colors/2/telegram:7: no two keys have one, since no topic has a / here.
    fact_id            TEXT NOT NULL UNIQUE AS (
        replace(replace(topic_key, '%', '%25'), '/', '%2F') || '/' || rank
        || CASE chat_id WHEN '' THEN '' ELSE '/' || chat_id END
    ),
    -- favorite_colors 2: Green
    content            TEXT NOT NULL AS (
        topic_key || CASE rank WHEN 0 THEN '' ELSE ' ' || rank END || ': ' || value
    ),
    PRIMARY KEY (chat_id, topic_key, kind, rank)
) WITHOUT ROWID;

-- A row per fact_stored that names a message as its source, also if newer facts replaced all of its own.
CREATE TABLE fact_sources (
    stream             TEXT NOT NULL,
    event_id           TEXT NOT NULL,
    chat_id            TEXT NOT NULL,     -- of the fact, as in facts
    source_message_id  TEXT NOT NULL,
    PRIMARY KEY (stream, event_id)
) WITHOUT ROWID;
CREATE INDEX fact_sources_by_message ON fact_sources (source_message_id);

-- A row per events_imported. Not in the digest of contents.
CREATE TABLE imported_events (
    stream      TEXT NOT NULL,
    event_id    TEXT NOT NULL,
    run         TEXT NOT NULL,
    format      TEXT NOT NULL,
    path        TEXT NOT NULL,     -- of its source
    appended    TEXT NOT NULL,     -- JSON: a list of ids by stream
    met         TEXT NOT NULL,
    ts          TEXT NOT NULL,
    precedence  TEXT NOT NULL,
    PRIMARY KEY (stream, precedence)
) WITHOUT ROWID;
CREATE INDEX imported_events_by_run ON imported_events (run);

-- A row per import_undone.
CREATE TABLE undone_imports (
    stream      TEXT NOT NULL,
    event_id    TEXT NOT NULL,
    run         TEXT NOT NULL,
    kept        TEXT NOT NULL,     -- JSON: a list of ids by stream
    derived     TEXT NOT NULL,
    ts          TEXT NOT NULL,
    precedence  TEXT NOT NULL,
    PRIMARY KEY (stream, precedence)
) WITHOUT ROWID;

-- A row per event that does not count, since its import, or that of its source, was undone. It has a row in
-- `events`, and none in the tables of subjects.
CREATE TABLE hidden_events (
    target_stream  TEXT NOT NULL,
    target_id      TEXT NOT NULL,
    stream         TEXT NOT NULL,  -- of the import_undone
    precedence     TEXT NOT NULL,
    PRIMARY KEY (target_stream, target_id)
) WITHOUT ROWID;

-- A view with a row per event that counts and that is not about imports.
CREATE VIEW counting_events AS
SELECT * FROM events e
WHERE stream <> 'imports' AND NOT EXISTS (
    SELECT 1 FROM hidden_events h WHERE (h.target_stream, h.target_id) = (e.stream, e.id)
);

-- A row per stream with events that began or ceased to be hidden since it was projected. Not in the digest.
CREATE TABLE streams_to_replay (
    target_stream  TEXT PRIMARY KEY
) WITHOUT ROWID;

-- A row per source of documents that is registered.
CREATE TABLE sources (
    source_id   TEXT PRIMARY KEY,
    stream      TEXT NOT NULL,
    event_id    TEXT NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('memory', 'docs')),
    root        TEXT,
    include     TEXT NOT NULL,     -- a JSON list of glob patterns
    exclude     TEXT NOT NULL,
    writer      TEXT NOT NULL,     -- who registered it, and alone refreshes it; '' of a plain segment name
    created_at  TEXT NOT NULL,     -- ts of the newest source_registered
    precedence  TEXT NOT NULL
) WITHOUT ROWID;

-- A row per document.
CREATE TABLE documents (
    document_id  TEXT PRIMARY KEY,  -- source_id/file
    stream       TEXT NOT NULL,
    event_id     TEXT NOT NULL,
    source_id    TEXT NOT NULL,
    file         TEXT NOT NULL,     -- below the source's root
    kind         TEXT NOT NULL CHECK (kind IN ('memory', 'docs')),  -- of its source: which chunks are its own
    filetype     TEXT,
    mtime        TEXT,
    size         INTEGER,           -- in bytes
    version      TEXT NOT NULL,     -- sha256 of its bytes
    content      TEXT NOT NULL,
    dated_at     TEXT NOT NULL,     -- by its front matter, else its file
    indexed_at   TEXT NOT NULL,
    precedence   TEXT NOT NULL
);
CREATE INDEX documents_by_source ON documents (source_id, file);

-- A row per passage that is embedded and searched as a memory or message: of a message (source
-- `conversation`), a memory, a summary (source `summary`), a fact (source `fact`), a daily event (source
-- `daily_event`), or a document of a source of kind `memory`. A number is never used twice.
CREATE TABLE memory_chunks (
    chunk_no        INTEGER PRIMARY KEY,
    stream          TEXT NOT NULL,
    memory_id       TEXT REFERENCES memories (memory_id) ON DELETE CASCADE,
    message_id      TEXT,
    summary_id      TEXT,
    fact_id         TEXT REFERENCES facts (fact_id) ON DELETE CASCADE,
    daily_event_id  TEXT,
    document_id     TEXT REFERENCES documents (document_id) ON DELETE CASCADE,
    chunk_index     INTEGER NOT NULL,  -- 0 for the first passage of its owner
    source          TEXT NOT NULL,
    chat_id         TEXT,              -- channel:chat_id
    section         TEXT,              -- the Markdown headings above it, joined by ` > `
    label           TEXT,              -- indexed and embedded with it: the speaker, a memory's own title, a day
    content         TEXT NOT NULL,
    start_char      INTEGER NOT NULL,  -- in the content of its owner, in code points
    end_char        INTEGER NOT NULL,
    created_at      TEXT NOT NULL,
    updated_at      TEXT NOT NULL,     -- of a daily event the beginning of its day
    CHECK (
        (memory_id IS NOT NULL) + (message_id IS NOT NULL) + (summary_id IS NOT NULL)
        + (fact_id IS NOT NULL) + (daily_event_id IS NOT NULL) + (document_id IS NOT NULL) = 1
    ),
    FOREIGN KEY (stream, message_id) REFERENCES messages (stream, id) ON DELETE CASCADE,
    FOREIGN KEY (stream, summary_id) REFERENCES summaries (stream, id) ON DELETE CASCADE,
    FOREIGN KEY (stream, daily_event_id) REFERENCES daily_events (stream, id) ON DELETE CASCADE
);
CREATE INDEX memory_chunks_by_memory ON memory_chunks (memory_id) WHERE memory_id IS NOT NULL;
CREATE INDEX memory_chunks_by_message ON memory_chunks (stream, message_id) WHERE message_id IS NOT NULL;
CREATE INDEX memory_chunks_by_summary ON memory_chunks (stream, summary_id) WHERE summary_id IS NOT NULL;
CREATE INDEX memory_chunks_by_fact ON memory_chunks (fact_id) WHERE fact_id IS NOT NULL;
CREATE INDEX memory_chunks_by_daily_event ON memory_chunks (stream, daily_event_id)
    WHERE daily_event_id IS NOT NULL;
CREATE INDEX memory_chunks_by_document ON memory_chunks (document_id) WHERE document_id IS NOT NULL;

-- A row per passage of a document of a source of kind `docs`.
CREATE TABLE doc_chunks (
    chunk_no     INTEGER PRIMARY KEY,
    stream       TEXT NOT NULL,
    document_id  TEXT NOT NULL REFERENCES documents (document_id) ON DELETE CASCADE,
    chunk_index  INTEGER NOT NULL,
    file         TEXT NOT NULL,
    section      TEXT,
    label        TEXT,              -- indexed with it, and not embedded: the file
    content      TEXT NOT NULL,
    version      TEXT NOT NULL,     -- of the document
    start_char   INTEGER NOT NULL,  -- in the document's content, in code points
    end_char     INTEGER NOT NULL,
    start_line   INTEGER NOT NULL,  -- from 1
    end_line     INTEGER NOT NULL,
    created_at   TEXT NOT NULL,
    updated_at   TEXT NOT NULL
);
CREATE INDEX doc_chunks_by_document ON doc_chunks (document_id);

-- A row per passage that has no vector yet. Not in the digest.
CREATE TABLE memory_chunks_queue (
    chunk_no  INTEGER PRIMARY KEY REFERENCES memory_chunks (chunk_no) ON DELETE CASCADE
);
CREATE TABLE doc_chunks_queue (
    chunk_no  INTEGER PRIMARY KEY REFERENCES doc_chunks (chunk_no) ON DELETE CASCADE
);

-- Full text of whole messages, of memory_chunks without those of messages, and of doc_chunks, as
-- memlog.projector.text.analyzer gives it. Contentless, since the tables above have the text
-- (memlog.projector.passages.fulltext). https://www.sqlite.org/fts5.html#contentless_tables
CREATE VIRTUAL TABLE messages_fts USING fts5 (
    content, content = '', tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
);
CREATE VIRTUAL TABLE memory_chunks_fts USING fts5 (
    content, content = '', tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
);
CREATE VIRTUAL TABLE doc_chunks_fts USING fts5 (
    content, content = '', tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
);

-- memlog.projector.passages.vectors makes the vec0 tables `vec_memory` and `vec_docs` when it knows a model:
-- rowid = chunk_no, embedding float[dimension of the model].
