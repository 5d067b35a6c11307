-- All times are microseconds since the epoch. Free text is redacted before it comes here.

CREATE TABLE targets (
    target_id      TEXT PRIMARY KEY,
    target_name    TEXT NOT NULL UNIQUE,
    kind           TEXT NOT NULL CHECK (kind IN ('local', 'ssh')),
    connection_ref TEXT NOT NULL DEFAULT '',
    tmux_socket    TEXT NOT NULL DEFAULT '',
    is_default     INTEGER NOT NULL DEFAULT 0,
    is_ephemeral   INTEGER NOT NULL DEFAULT 0,
    last_seen_at   INTEGER,
    health         TEXT NOT NULL DEFAULT 'ok' CHECK (health IN ('ok', 'degraded', 'down')),
    updated_at     INTEGER NOT NULL
) STRICT;

CREATE TABLE panes (
    target_id    TEXT NOT NULL,
    pane_id      TEXT NOT NULL,
    session_name TEXT NOT NULL,
    window_id    TEXT NOT NULL,
    window_name  TEXT NOT NULL,
    title        TEXT NOT NULL DEFAULT '',
    cwd          TEXT NOT NULL DEFAULT '',
    updated_at   INTEGER NOT NULL,
    PRIMARY KEY (target_id, pane_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE runtimes (
    runtime_id          TEXT PRIMARY KEY,
    target_id           TEXT NOT NULL,
    pane_id             TEXT NOT NULL,
    tmux_server_boot_id TEXT NOT NULL,
    pane_epoch          INTEGER NOT NULL,
    agent_type          TEXT NOT NULL,
    agent_version       TEXT,
    pid                 INTEGER,
    started_at          INTEGER NOT NULL,
    ended_at            INTEGER,
    last_state_version  INTEGER NOT NULL DEFAULT 0,
    UNIQUE (target_id, tmux_server_boot_id, pane_id, pane_epoch)
) STRICT;
CREATE UNIQUE INDEX runtimes_one_active ON runtimes (target_id, pane_id) WHERE ended_at IS NULL;
CREATE INDEX runtimes_ended ON runtimes (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE actions (
    action_id     TEXT PRIMARY KEY,
    action_type   TEXT NOT NULL,
    request_ref   TEXT NOT NULL,
    target_id     TEXT NOT NULL,
    pane_id       TEXT NOT NULL,
    runtime_id    TEXT NOT NULL,
    requested_at  INTEGER NOT NULL,
    completed_at  INTEGER,
    result_code   TEXT NOT NULL,
    error_code    TEXT,
    metadata_json TEXT NOT NULL DEFAULT '{}'
) STRICT;
CREATE UNIQUE INDEX actions_request ON actions (action_type, request_ref);

CREATE TABLE action_snapshots (
    snapshot_id   TEXT PRIMARY KEY,
    action_id     TEXT NOT NULL REFERENCES actions (action_id),
    target_id     TEXT NOT NULL,
    pane_id       TEXT NOT NULL,
    runtime_id    TEXT NOT NULL,
    state_version INTEGER NOT NULL,
    observed_at   INTEGER NOT NULL,
    expires_at    INTEGER NOT NULL,
    nonce         TEXT NOT NULL
) STRICT;
CREATE INDEX action_snapshots_action ON action_snapshots (action_id);

CREATE TABLE events (
    event_id        TEXT PRIMARY KEY,
    runtime_id      TEXT NOT NULL,
    event_type      TEXT NOT NULL,
    source          TEXT NOT NULL CHECK (source IN ('hook', 'notify', 'wrapper', 'poller', 'reconciler')),
    source_event_id TEXT,
    source_seq      INTEGER,
    event_time      INTEGER NOT NULL,
    ingested_at     INTEGER NOT NULL,
    dedupe_key      TEXT NOT NULL CHECK (dedupe_key <> ''),
    action_id       TEXT REFERENCES actions (action_id),
    raw_payload     TEXT
) STRICT;
CREATE UNIQUE INDEX events_dedupe ON events (runtime_id, source, dedupe_key);
CREATE INDEX events_by_runtime ON events (runtime_id, source, ingested_at DESC);
CREATE INDEX events_by_time ON events (ingested_at DESC);
CREATE INDEX events_by_action ON events (action_id) WHERE action_id IS NOT NULL;

CREATE TABLE event_inbox (
    inbox_id        TEXT PRIMARY KEY,
    target_id       TEXT NOT NULL,
    pane_id         TEXT NOT NULL,
    runtime_id      TEXT,
    event_type      TEXT NOT NULL,
    source          TEXT NOT NULL,
    source_event_id TEXT,
    source_seq      INTEGER,
    dedupe_key      TEXT NOT NULL,
    event_time      INTEGER NOT NULL,
    ingested_at     INTEGER NOT NULL,
    pid             INTEGER,
    start_hint      INTEGER,
    agent_type      TEXT,
    server_pid      INTEGER,
    status          TEXT NOT NULL CHECK (status IN ('pending_bind', 'bound', 'dropped_unbound')),
    reason_code     TEXT,
    verdict_json    TEXT,
    raw_payload     TEXT
) STRICT;
CREATE UNIQUE INDEX event_inbox_dedupe ON event_inbox (target_id, pane_id, source, dedupe_key);
CREATE INDEX event_inbox_status ON event_inbox (status, ingested_at);

-- The newest verdict of each source stands beside its cursor: together they decide the state.
CREATE TABLE runtime_source_cursors (
    runtime_id             TEXT NOT NULL,
    source                 TEXT NOT NULL,
    last_readable          INTEGER NOT NULL,
    last_source_seq        INTEGER,
    last_order_event_time  INTEGER NOT NULL,
    last_order_ingested_at INTEGER NOT NULL,
    last_order_event_id    TEXT NOT NULL,
    event_type             TEXT NOT NULL,
    verdict_json           TEXT,
    PRIMARY KEY (runtime_id, source)
) STRICT, WITHOUT ROWID;

CREATE TABLE states (
    target_id       TEXT NOT NULL,
    pane_id         TEXT NOT NULL,
    runtime_id      TEXT NOT NULL,
    state           TEXT NOT NULL,
    reason_code     TEXT NOT NULL CHECK (reason_code <> ''),
    confidence      TEXT NOT NULL CHECK (confidence IN ('high', 'medium', 'low')),
    source          TEXT,
    state_version   INTEGER NOT NULL,
    last_source_seq INTEGER,
    last_seen_at    INTEGER,
    updated_at      INTEGER NOT NULL,
    attention_json  TEXT,
    evidence_json   TEXT NOT NULL DEFAULT '[]',
    PRIMARY KEY (target_id, pane_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX states_by_time ON states (updated_at DESC);
CREATE INDEX states_by_state ON states (state, updated_at DESC);

CREATE TABLE adapters (
    adapter_name TEXT PRIMARY KEY,
    agent_type   TEXT NOT NULL,
    version      TEXT NOT NULL,
    capabilities TEXT NOT NULL,
    enabled      INTEGER NOT NULL DEFAULT 1,
    updated_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
