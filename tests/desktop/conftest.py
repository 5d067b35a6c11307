"""The app's core, started with a real daemon."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from AgtmuxBar.app import App
from desktop.running import Desktop, Screen
from support.home import Home, home_in, wait_until


@pytest.fixture
def home(short_tmp: Path, monkeypatch) -> Iterator[Home]:
    with home_in(short_tmp) as made:
        for name in ("AGTMUX_SOCKET", "XDG_RUNTIME_DIR"):
            monkeypatch.delenv(name, raising=False)
        for name in ("AGTMUX_STATE_DIR", "AGTMUX_CONFIG_DIR", "TMUX_TMPDIR"):
            monkeypatch.setenv(name, made.env[name])
        yield made


@pytest.fixture
def started(home: Home) -> Iterator[tuple[App, Screen, Desktop]]:
    home.pane()
    home.start()
    screen, desktop = Screen(), Desktop()
    app = App(screen, desktop)
    app.start()
    wait_until(lambda: screen.item("pane ") is not None, "the pane of an agent in the menu")
    yield app, screen, desktop
    app.stop()
