-- What was asked and answered, a row a session of an agent, and how far its file has been read.
CREATE TABLE conversations (
    conversation_id TEXT PRIMARY KEY,
    target_id       TEXT NOT NULL,
    agent_type      TEXT NOT NULL,
    -- As the agent calls it; NULL where it was seen on a screen.
    session_id      TEXT,
    -- Who had it last.
    runtime_id      TEXT,
    cwd             TEXT NOT NULL DEFAULT '',
    -- The top of the git work tree that it is in, NULL where it is in none.
    worktree        TEXT,
    branch          TEXT NOT NULL DEFAULT '',
    title           TEXT NOT NULL DEFAULT '',
    source          TEXT NOT NULL CHECK (source IN ('transcript', 'screen', 'chat')),
    started_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    -- The file, the place up to which it was read, and a digest of what is before that place.
    path            TEXT NOT NULL DEFAULT '',
    offset          INTEGER NOT NULL DEFAULT 0,
    mark            TEXT NOT NULL DEFAULT '',
    is_within       INTEGER NOT NULL DEFAULT 0,
    -- Of a screen: the lines that were on it when it was last read, as JSON.
    seen            TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX conversations_by_time ON conversations (updated_at);
CREATE INDEX conversations_by_worktree ON conversations (worktree, updated_at);
CREATE INDEX conversations_by_runtime ON conversations (runtime_id);

CREATE TABLE said (
    seq             INTEGER PRIMARY KEY AUTOINCREMENT,
    message_id      TEXT NOT NULL UNIQUE,
    conversation_id TEXT NOT NULL REFERENCES conversations (conversation_id) ON DELETE CASCADE,
    runtime_id      TEXT,
    role            TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
    content         TEXT NOT NULL,
    summary         TEXT NOT NULL,
    at              INTEGER NOT NULL,
    request_id      TEXT,
    is_cut          INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX said_by_conversation ON said (conversation_id, seq);
CREATE INDEX said_by_time ON said (at);

-- By three letters: a piece of a word, of a path or of a sentence without blanks is found as well.
CREATE VIRTUAL TABLE said_index USING fts5 (content, content = 'said', content_rowid = 'seq', tokenize = 'trigram');
CREATE TRIGGER said_added AFTER INSERT ON said BEGIN
    INSERT INTO said_index (rowid, content) VALUES (new.seq, new.content);
END;
CREATE TRIGGER said_removed AFTER DELETE ON said BEGIN
    INSERT INTO said_index (said_index, rowid, content) VALUES ('delete', old.seq, old.content);
END;
CREATE TRIGGER said_changed AFTER UPDATE OF content ON said BEGIN
    INSERT INTO said_index (said_index, rowid, content) VALUES ('delete', old.seq, old.content);
    INSERT INTO said_index (rowid, content) VALUES (new.seq, new.content);
END;
