"""The first answer after a start is right, or says what it does not know yet."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from support.home import Home, wait_until
from support.recorded import RecordedAgents, wrong
from support.sshd import Sshd
from support.targets import HASTY, add, health, report, seen
from support.watching import Watcher

AGENTS = ["claude", "codex", "gemini", "copilot", "claude", "codex"]
STARTS = 3


def test_the_first_answer_after_a_start_is_right(home: Home) -> None:
    """Others wait each time than those of which the daemon before knew."""
    agents = RecordedAgents(home.tmux, home.folder, AGENTS)
    for start in range(STARTS):
        waiting = set(random.Random(start).sample(agents.panes, 2))
        for pane in agents.panes:
            agents.show(pane, "waiting" if pane in waiting else "at rest", start)
        done = home.run("list", "panes", "--json")
        assert done.returncode == 0, done.stderr
        listing = json.loads(done.stdout)
        assert wrong(listing, waiting, agents.panes) == []
        assert (listing["partial"], listing["target_errors"]) == (False, [])
        assert home.run("down").returncode == 0


def test_whoever_waits_is_found_by_the_first_command_whichever_it_is(home: Home) -> None:
    agents = RecordedAgents(home.tmux, home.folder, AGENTS[:2])
    agents.show(agents.panes[1], "waiting")
    for words, expected in (
        (("list", "--needs-action"), "codex"),
        (("attach", "--waiting", "--print"), "select-pane -Z -t %1"),
        (("menu",), "codex"),
        (("wait", "--all", "--for", "completed", "--timeout", "20s"), "codex"),
    ):
        done = home.run(*words)
        assert expected in done.stdout + done.stderr, (words, done)
        assert home.run("down").returncode == 0


def test_what_is_only_remembered_is_shown_as_remembered(home: Home, vms: Callable[..., list[Sshd]]) -> None:
    """A VM that is off since: what it did is no state, and costs the first answer no more than its time."""
    home.configure(HASTY)
    [vm] = vms(1)
    pane = vm.pane()
    here = home.pane()
    daemon = home.start()
    add(home, "vm1")
    key = ("vm1", pane)
    wait_until(lambda: key in seen(home), "the pane of the VM")
    for target, pane_id in (("vm1", pane), ("host", here)):
        report(home, target, pane_id, "state.completed")
    assert {item["state"] for item in seen(home).values() if item["agent_type"] == "claude"} == {"completed"}
    home.end(daemon)
    vm.stop()

    done = home.run("list", "panes", "--json")

    assert done.returncode == 0, done.stderr
    listing = json.loads(done.stdout)
    item = next(each for each in listing["items"] if each["identity"]["target"] == "vm1")
    assert (item["state"], item["confidence"]) == ("unknown", "low")
    assert item["reason_code"] in ("not_observed_yet", "target_unreachable")
    if item["reason_code"] == "not_observed_yet":
        assert item["remembered"]["state"] == "completed"
    assert listing["partial"]
    assert [error["target"] for error in listing["target_errors"]] == ["vm1"]
    shown = home.run("list")
    assert "completed" not in "".join(line for line in shown.stdout.splitlines() if "vm1" in line), shown.stdout


def test_a_watch_stream_tells_which_target_was_not_looked_at_yet(home: Home, vms: Callable[..., list[Sshd]]) -> None:
    """As a listing does; and when it was."""
    home.configure('[targets]\nconnect_timeout = "100s"\n')
    [vm] = vms(1)
    # Without a pane, nothing changes there when it is looked at.
    daemon = home.start()
    add(home, "vm1")
    wait_until(lambda: health(home, "vm1") == "ok", "the VM")
    home.end(daemon)
    vm.freeze()
    home.start()

    def missing(answer: dict[str, Any]) -> tuple[bool, list[str], list[str]]:
        return answer["partial"], answer["responded_targets"], [each["target"] for each in answer["target_errors"]]

    listed = home.ask("GET", "/v1/panes").json
    assert missing(listed) == (True, ["host"], ["vm1"])
    with Watcher(home.socket) as watcher:
        first = watcher.next()
        assert first is not None and missing(first) == missing(listed)
        vm.thaw()
        while missing(watcher.lines[-1]) != (False, ["host", "vm1"], []):
            assert watcher.next() is not None
