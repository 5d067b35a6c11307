-- The top of the git work tree that a pane's folder is in; empty where it is in none.
ALTER TABLE panes ADD COLUMN worktree TEXT NOT NULL DEFAULT '';
-- When an agent was seen to have taken up its role; NULL until then.
ALTER TABLE roles ADD COLUMN confirmed_at INTEGER;
