"""The `agtmux` command: thin, quick to start, complete."""
