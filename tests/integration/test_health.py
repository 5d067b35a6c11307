"""A tmux that does not answer: its agents become unknown, say why, and come back by themselves."""

import shutil
from pathlib import Path

import pytest

from support.home import Home, event, wait_until


@pytest.fixture
def ailment(home: Home) -> Path:
    """While this file is there, tmux fails for the daemon and for nobody else."""
    ill = home.folder / "ill"
    wrapper = home.folder / "wrapped" / "tmux"
    wrapper.parent.mkdir()
    wrapper.write_text(
        "#!/bin/sh\n"
        f'[ -e "{ill}" ] || exec {shutil.which("tmux")} "$@"\n'
        'echo "error connecting to x (Resource temporarily unavailable)" >&2; exit 1\n'
    )
    wrapper.chmod(0o755)
    return ill


def test_a_target_that_fails_is_unknown_and_comes_back(home: Home, ailment: Path):
    pane = home.pane()
    home.start(env=home.env | {"PATH": f"{ailment.parent / 'wrapped'}:{home.env['PATH']}"})
    wait_until(lambda: pane in home.panes(), "the pane")
    home.ask("POST", "/v1/events", event(pane, "state.waiting_approval"))
    runtime_id = home.panes()[pane]["runtime_id"]

    ailment.touch()
    wait_until(lambda: home.health()["targets"][0]["health"] == "degraded", "it to be degraded")
    assert home.state_of(pane) == "waiting_approval", "one failure is no reason to forget who waits"
    wait_until(lambda: home.state_of(pane) == "unknown", "it to be unknown")
    shown = home.panes()[pane]
    assert (shown["reason_code"], shown["confidence"]) == ("target_unreachable", "low")
    assert home.health()["targets"][0]["health"] == "down"
    listing = home.ask("GET", "/v1/panes").json
    assert (listing["partial"], listing["responded_targets"]) == (True, [])

    ailment.unlink()
    wait_until(lambda: home.state_of(pane) == "waiting_approval", "it to come back")
    assert home.panes()[pane]["runtime_id"] == runtime_id
    assert home.ask("GET", "/v1/panes").json["partial"] is False
    told = home.query("SELECT source FROM events WHERE event_type = 'target_health_changed'")
    assert len(told) >= 3 and set(told) == {("reconciler",)}
