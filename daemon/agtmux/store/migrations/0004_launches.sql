-- Agents that were started through agtmux: how many there may be is counted here, and who may stop them is looked up.
CREATE TABLE launches (
    action_id    TEXT PRIMARY KEY,
    -- The runtime of the agent that asked for it; NULL is the user.
    launcher_id  TEXT,
    target_id    TEXT NOT NULL,
    agent_type   TEXT NOT NULL,
    requested_at INTEGER NOT NULL,
    -- The pane that was made for it, within the life of its tmux server, and the process in it. NULL before that.
    server       TEXT,
    pane_id      TEXT,
    pane_pid     INTEGER,
    -- NULL while it is under way.
    settled_at   INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX launches_by_time ON launches (requested_at);
