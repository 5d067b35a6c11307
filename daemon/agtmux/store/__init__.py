"""SQLite: schema and migrations, one writer with group commit, readers beside it, retention."""
