-- Teams that were brought up, as their files said then.
CREATE TABLE teams (
    name       TEXT PRIMARY KEY,
    sheet      TEXT NOT NULL,
    brought_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
