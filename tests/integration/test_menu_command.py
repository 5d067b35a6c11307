"""`agtmux menu` with a real daemon: the menu of the tray, in a terminal."""

import json

from support.home import Home, event


def test_the_menu_is_printed_as_it_would_be_drawn(home: Home):
    pane = home.pane()
    home.start()
    payload = {"reason_code": "gate", "attention": {"kind": "approval", "summary": "deploy \x1b[31mnow"}}
    home.ask("POST", "/v1/events", event(pane, "state.waiting_approval", raw_payload=payload))
    done = home.run("menu")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert lines[:2] == ["[waiting] 1", "── 1 waits for you"]
    assert f"! claude · host-{home.panes()[pane]['identity']['session_name']} {pane} · deploy [31mnow · now" in lines
    assert "\x1b" not in done.stdout


def test_its_json_says_what_each_item_does(home: Home):
    pane = home.pane()
    home.start()
    asks = {"attention": {"kind": "approval", "summary": "make deploy"}}
    home.ask("POST", "/v1/events", event(pane, "state.waiting_approval", raw_payload=asks))
    menu = json.loads(home.run("menu", "--json").stdout)
    (waiting,) = (item for item in menu["items"] if item["key"].startswith("wait "))
    (approve,) = (item for item in waiting["children"] if item["label"] == "Approve once")
    assert approve["action"]["parameters"]["runtime_id"] == home.panes()[pane]["runtime_id"]


def test_without_a_daemon_it_says_so_if_it_may_start_none(home: Home):
    done = home.run("menu", "--no-start")
    assert done.returncode == 3
    assert "E_DAEMON_UNAVAILABLE" in done.stderr
