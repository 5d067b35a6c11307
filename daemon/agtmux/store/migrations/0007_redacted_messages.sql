-- Whether `content` is the redacted form of what was sent (1) or the text itself, which has nothing to redact (0).
-- NULL: written before this was looked at; the daemon redacts such rows after its next start.
ALTER TABLE messages ADD COLUMN is_redacted INTEGER;
CREATE INDEX messages_unredacted ON messages (seq) WHERE is_redacted IS NULL;
