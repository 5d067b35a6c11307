-- What agents, and their user, say to each other. `seq` is the order in which it was accepted.
CREATE TABLE messages (
    seq              INTEGER PRIMARY KEY AUTOINCREMENT,
    message_id       TEXT NOT NULL UNIQUE,
    -- Of whom it is sure, by a runtime; a sender that is no agent has none, and neither has the user as a receiver.
    sender_id        TEXT,
    sender_name      TEXT NOT NULL,
    receiver_id      TEXT,
    receiver_name    TEXT NOT NULL,
    request_ref      TEXT,
    type             TEXT NOT NULL,
    priority         INTEGER NOT NULL,
    content          TEXT,
    thinking         TEXT,
    size             INTEGER NOT NULL,
    reply_to         TEXT,
    task_id          TEXT,
    correlation_id   TEXT,
    sent_at          INTEGER NOT NULL,
    expires_at       INTEGER NOT NULL,
    status           TEXT NOT NULL CHECK (status IN
                         ('queued', 'delivering', 'delivered', 'expired', 'refused', 'uncertain')),
    reason           TEXT NOT NULL DEFAULT '',
    -- How far its typing has come: '', 'pasting' or 'entering'. Each is written before it is begun.
    stage            TEXT NOT NULL DEFAULT '',
    via              TEXT NOT NULL DEFAULT '',
    attempts         INTEGER NOT NULL DEFAULT 0,
    action_id        TEXT,
    settled_at       INTEGER
) STRICT;
CREATE INDEX messages_open ON messages (status, receiver_id) WHERE status IN ('queued', 'delivering');
CREATE INDEX messages_by_receiver ON messages (receiver_id, seq);
CREATE INDEX messages_by_sender ON messages (sender_id, seq);
CREATE UNIQUE INDEX messages_by_request ON messages (coalesce(sender_id, sender_name), request_ref)
    WHERE request_ref IS NOT NULL;

-- Names that agents were given; all others are called by what and where they are.
CREATE TABLE roles (
    runtime_id TEXT PRIMARY KEY,
    role       TEXT NOT NULL,
    team       TEXT NOT NULL DEFAULT '',
    -- JSON: the names it may write to; NULL is everybody.
    peers      TEXT,
    given_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
