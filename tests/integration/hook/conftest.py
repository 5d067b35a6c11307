"""An agtmux-hook of the test's own, and a daemon for it to talk to."""

import os
from pathlib import Path

import pytest

from agtmux.hook.compose import compose
from support.hook import Daemon, Hook, install, patient


@pytest.fixture
def hook(tmp_path, short_tmp):
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "AGTMUX_STATE_DIR": str(tmp_path / "state"),
        "AGTMUX_SOCKET": str(short_tmp / "s"),
        "TMUX_PANE": "%7",
        "TMUX": "/tmp/tmux-0/default,1,0",
    }
    # A noisy machine must not decide what becomes of an event.
    return Hook(install(tmp_path / "bin", patient(compose())), env, tmp_path / "state")


@pytest.fixture
def prompt_hook(hook):
    """As it is installed for users, to see that it holds nobody up."""
    hook.command.write_text(compose(), "utf-8")
    return hook


@pytest.fixture
def daemon(hook):
    with Daemon(Path(hook.env["AGTMUX_SOCKET"])).serving() as daemon:
        yield daemon
