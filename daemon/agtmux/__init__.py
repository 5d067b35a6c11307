"""agtmux tells which coding agent needs you, and lets you answer from where you are."""

__version__ = "0.1.0"
