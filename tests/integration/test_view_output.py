"""`view-output` and the log of actions, on real panes."""

import json

from support.home import Home, wait_until


def ref_of(home: Home, pane: str) -> str:
    return str(wait_until(lambda: home.panes().get(pane), "the pane")["ref"])


def counting(home: Home) -> str:
    return home.pane(command="sh -c 'seq 1 500; echo 終わり; exec sleep 3600'")


def test_the_last_lines_are_printed_also_those_that_have_scrolled_away(home: Home) -> None:
    pane = counting(home)
    home.start()
    ref = ref_of(home, pane)
    wait_until(lambda: "終わり" in home.tmux("capture-pane", "-p", "-t", pane), "its output")
    done = home.run("view-output", ref)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [*map(str, range(302, 501)), "終わり"]
    assert home.run("view-output", ref, "--lines", "3").stdout.splitlines() == ["499", "500", "終わり"]
    answer = json.loads(home.run("view-output", ref, "--lines", "2", "--json").stdout)
    assert (answer["output"], answer["result_code"], answer["about"]["lines"]) == ("500\n終わり", "done", 2)
    assert answer["action_id"] and answer["completed_at"]


def test_a_pane_that_is_gone_or_has_another_in_it_is_refused(home: Home) -> None:
    pane = counting(home)
    home.pane()
    home.start()
    item = wait_until(lambda: home.panes().get(pane), "the pane")
    runtime = f"runtime:{item['runtime_id']}"
    assert home.run("view-output", runtime).returncode == 0
    home.tmux("respawn-pane", "-k", "-t", pane, "sleep 3600")
    done = home.run("view-output", runtime)
    assert (done.returncode, done.stdout) == (4, "")
    assert "E_RUNTIME_STALE" in done.stderr
    home.tmux("kill-pane", "-t", pane)
    done = home.run("view-output", item["ref"])
    assert done.returncode in (4, 5) and done.stdout == ""
    assert home.run("view-output", "pane:nowhere").returncode == 2
    done = home.run("view-output", ref_of(home, "%1"), "--lines", "0")
    assert done.returncode == 2 and "E_USAGE" in done.stderr


def test_whatever_was_asked_for_is_in_the_log_and_found_again_after_a_restart(home: Home) -> None:
    pane = counting(home)
    daemon = home.start()
    asked = {"request_ref": "again", "ref": ref_of(home, pane), "lines": 2}
    first = home.ask("POST", "/v1/actions/view-output", asked).json
    assert not first["is_replay"]
    home.end(daemon)
    home.start()
    second = home.ask("POST", "/v1/actions/view-output", asked).json
    assert second["is_replay"] and "output" not in second
    assert second["action_id"] == first["action_id"]
    answer = home.ask("POST", "/v1/actions/view-output", asked | {"lines": 3})
    assert (answer.status, answer.error["code"]) == (409, "E_IDEMPOTENCY_CONFLICT")
    refused = home.ask("POST", "/v1/actions/view-output", asked | {"request_ref": "no", "if_state": "idle"})
    assert (refused.status, refused.error["code"]) == (412, "E_PRECONDITION_FAILED")
    done = home.run("log", "actions")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3
    assert "refused" in done.stdout.splitlines()[1] and "E_PRECONDITION_FAILED" in done.stdout.splitlines()[1]
    items = json.loads(home.run("log", "actions", "--json", "--limit", "1").stdout)["items"]
    assert [item["request_ref"] for item in items] == ["no"]
