"""Fixtures for tests with real daemons, real sockets, real databases and a real tmux server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.home import Home, home_in


@pytest.fixture
def home(short_tmp: Path) -> Iterator[Home]:
    """A user of the test's own. Whatever it starts is ended with the test."""
    with home_in(short_tmp) as made:
        yield made
