"""What the everyday commands import is part of their interface: it is most of the time they take."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from support.home import Home, event, shared_home, wait_until

# Each costs milliseconds that Python itself does not.
TOO_DEAR = (
    *("typing", "dataclasses", "asyncio", "socket", "subprocess", "msgspec", "inspect", "pathlib", "shutil"),
    *("tempfile", "logging", "urllib", "http", "email", "ssl", "sqlite3", "concurrent", "importlib.metadata"),
    *("importlib.resources", "difflib", "threading", "uvicorn", "starlette", "aiosqlite"),
)


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    with shared_home() as made:
        pane = made.pane()
        made.start()
        wait_until(lambda: pane in made.panes(), "the pane")
        made.ask("POST", "/v1/events", event(pane, "state.waiting_approval"))
        yield made


def imported(home: Home, *words: str) -> set[str]:
    """Every module that a command imports, and all that a bare Python does not."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "agtmux.cli.main", *words],
        env=home.env,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    rows = (line.removeprefix("import time:").split("|") for line in done.stderr.splitlines())
    return {row[2].strip() for row in rows if len(row) == 3}


def bare(home: Home) -> set[str]:
    # `-m` itself needs runpy, and an editable install its own finder.
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "this"], env=home.env, capture_output=True, text=True, timeout=30
    )
    rows = (line.removeprefix("import time:").split("|") for line in done.stderr.splitlines())
    return {row[2].strip() for row in rows if len(row) == 3}


@pytest.mark.parametrize(
    "words",
    [
        ["status"],
        ["status", "--json"],
        ["list", "panes"],
        ["list", "panes", "--json"],
        ["list", "panes", "--all"],
        ["watch", "--once"],
        ["watch", "--once", "--format", "jsonl"],
        ["watch", "--once", "--scope", "sessions"],
        ["bar", "--format", "tmux"],
        ["wait", "--any", "--for", "waiting_approval"],
        ["down"],
    ],
    ids=" ".join,
)
def test_everyday_commands_import_nothing_dear(home: Home, words: list[str]):
    if words == ["down"]:
        home = Home(home.folder / "nobody")
    dear = imported(home, *words) - bare(home)
    assert {name for name in dear if name in TOO_DEAR or name.split(".")[0] in TOO_DEAR} == set()


def test_the_measure_sees_what_it_should(home: Home):
    assert {"agtmux.client", "agtmux.domain.errors", "argparse", "json"} <= imported(home, "status")
