"""The doors: HTTP/1.1 and JSON on a Unix socket that only its owner can open."""
