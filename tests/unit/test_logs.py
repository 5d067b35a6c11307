"""The daemon's log: for its owner alone, one redacted JSON object a line."""

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agtmux.logs import LOG_FILE, RotatingLog, open_log


@pytest.fixture
def log(tmp_path: Path) -> Iterator[RotatingLog]:
    """Opened as the daemon does, with an open umask. What pytest listens with is put back."""
    root = logging.getLogger()
    handlers, level, umask = root.handlers[:], root.level, os.umask(0)
    opened = open_log(tmp_path, "info", max_bytes=10_000, files=3)
    try:
        yield opened
    finally:
        opened.close()
        root.handlers[:] = handlers
        root.setLevel(level)
        os.umask(umask)


def test_every_log_file_is_for_its_owner_alone(tmp_path: Path, log: RotatingLog) -> None:
    for _ in range(100):
        logging.getLogger("agtmux").info("x" * 300)
    files = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "logs").iterdir()}
    assert files == dict.fromkeys([LOG_FILE, f"{LOG_FILE}.1", f"{LOG_FILE}.2"], 0o600)
    assert (tmp_path / "logs").stat().st_mode & 0o777 == 0o700


def test_a_line_is_an_object_without_secrets(tmp_path: Path, log: RotatingLog) -> None:
    secret = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"
    try:
        raise LookupError(f"no {secret}")
    except LookupError:
        logging.getLogger("agtmux.x").exception("refused %s", secret, extra={"given": secret})
    text = (tmp_path / "logs" / LOG_FILE).read_text("utf-8")
    line = json.loads(text)
    assert (line["level"], line["logger"]) == ("error", "agtmux.x")
    assert line["message"].startswith("refused ")
    assert "LookupError" in line["traceback"]
    assert "given" in line
    assert secret[4:-4] not in text


def test_a_line_that_cannot_be_written_is_counted_and_let_go(tmp_path: Path, log: RotatingLog) -> None:
    (tmp_path / "logs" / LOG_FILE).mkdir()
    logging.getLogger("agtmux").warning("to nobody")
    assert log.lost == 1
