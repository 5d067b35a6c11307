"""The daemon's log: for its owner alone, one redacted JSON object a line."""

import json
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agtmux.logs import LOG_FILE, Repeats, RotatingLog, open_log


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
    for number in range(100):
        logging.getLogger("agtmux").info(f"{number} " + "x" * 300)
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


def record(text: str, *arguments: object) -> logging.LogRecord:
    return logging.makeLogRecord(
        {"name": "agtmux", "levelno": 30, "levelname": "WARNING", "msg": text, "args": arguments}
    )


def test_what_is_said_again_and_again_is_counted_instead_of_written(tmp_path: Path, log: RotatingLog) -> None:
    now = 0.0
    log.repeats = Repeats(lambda: now)
    log.maxBytes = 1_000_000
    logger = logging.getLogger("agtmux")
    for number in range(2_000):
        logger.warning("no room")
        logger.warning("refused %d", number)
    lines = (tmp_path / "logs" / LOG_FILE).read_text("utf-8").splitlines()
    assert len(lines) == 105
    now = 61.0
    logger.warning("something else")
    lines = (tmp_path / "logs" / LOG_FILE).read_text("utf-8").splitlines()
    left_out = {line["message"]: line["left_out"] for line in map(json.loads, lines) if "left_out" in line}
    assert left_out["1995 more like this were left out within a minute: no room"] == 1_995
    assert sum(left_out.values()) == 1_995 + 1_900
    assert json.loads(lines[-1])["message"] == "something else"


def test_one_kind_of_line_does_not_silence_another() -> None:
    repeats = Repeats(lambda: 0.0)
    passed = [repeats.passes(record("refused %s", f"{number}")) for number in range(200)]
    assert sum(passed) == 100
    assert repeats.passes(record("the disk is full"))
    assert repeats.passes(record("refused twice"))


def test_texts_without_number_take_no_memory_without_end() -> None:
    repeats = Repeats(lambda: 0.0)
    for number in range(10_000):
        repeats.passes(record(f"{number}"))
    assert len(repeats._counts) <= 2_001


def test_a_message_of_a_megabyte_is_cut(tmp_path: Path, log: RotatingLog) -> None:
    logging.getLogger("agtmux").warning("x y " * 250_000)
    assert (tmp_path / "logs" / LOG_FILE).stat().st_size < 10_000


def test_lines_are_counted_by_one_thread_at_a_time(log: RotatingLog) -> None:
    """Two threads that count at once forget the same line, and the second one's log call raises KeyError."""
    held = []

    def clock() -> float:
        # Whether another thread could be here as well.
        other = threading.Thread(target=lambda: held.append(not log.lock.acquire(blocking=False)))
        other.start()
        other.join()
        return 0.0

    log.repeats = Repeats(clock)
    logging.getLogger("agtmux").warning("no room")
    assert held == [True]
