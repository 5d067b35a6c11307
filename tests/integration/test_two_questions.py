"""Several parts of an agent may ask at once, and one may ask without a report: what is shown is what a yes is for."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from support.home import Home, wait_until
from support.http import Answer
from support.puppets import Puppet
from support.requests import asking


def attention(home: Home, puppet: Puppet) -> dict[str, Any]:
    return dict(home.panes()[puppet.pane]["attention"] or {})


def approve(home: Home, item: dict[str, Any], **more: Any) -> Answer:
    """As the menu, the board and `pick` do, with all that was shown."""
    shown = {"if_runtime": item["runtime_id"], "if_state": item["state"], "if_state_version": item["state_version"]}
    dialog = item["attention"]["fingerprint"]
    asked = {
        "request_ref": uuid.uuid4().hex,
        "ref": item["ref"],
        **more,
        **shown,
        **({"if_dialog": dialog} if dialog else {}),
    }
    return home.ask("POST", "/v1/actions/approve", asked)


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("reported", ["touch x", "ls"])
def test_no_key_goes_to_a_dialog_while_another_was_reported_since(home: Home, reported: str, waits: bool) -> None:
    puppet = Puppet(home, "one")
    home.start()
    puppet.wait_for("idle")
    puppet.ask("d1", "rm -r labels")
    with asking(home, puppet.pane, reported, waits=waits) as hook:
        wait_until(lambda: attention(home, puppet)["incomplete_reason"] == "screen_differs", "both of them")
        item = home.panes()[puppet.pane]
        shown = item["attention"]
        assert (shown["summary"], shown["fingerprint"], shown["whole"]) == (reported, None, False)
        assert reported in shown["detail"] and "rm -r labels" in shown["detail"]
        refused = approve(home, item)
        assert refused.error["code"] == "E_PRECONDITION_FAILED"
        assert refused.error["details"]["incomplete"] == "screen_differs"
        # A second step is named only where it would be taken.
        assert ("--partial" in refused.error["message"]) is waits
        second = approve(home, home.panes()[puppet.pane], partial=True)
        if waits:
            # The hook's own answer is for what was reported, whatever the screen shows.
            assert second.status == 200 or second.error["code"] == "E_DELIVERY_UNCERTAIN"
            assert b"allow" in hook.ended()
        else:
            assert second.error["code"] == "E_PRECONDITION_FAILED"
            assert "no key is pressed; answer it in its pane" in second.error["message"]
    assert puppet.given() == []


def test_what_was_reported_and_is_not_to_be_seen_is_answered_by_its_hook_alone(home: Home) -> None:
    puppet = Puppet(home, "one")
    home.start()
    puppet.wait_for("idle")
    puppet.ask("d1", "rm -r labels")
    with asking(home, puppet.pane, "touch x", waits=True) as hook:
        wait_until(lambda: attention(home, puppet)["summary"] == "touch x", "what was reported")
        item = home.panes()[puppet.pane]
        answer = approve(home, item)
        if answer.status == 200:
            assert answer.json["question"] == "touch x" and b"allow" in hook.ended()
        elif answer.error["code"] != "E_DELIVERY_UNCERTAIN":
            # Looked at again meanwhile: it shows the other by now. Else it was handed over, and nothing has come of it.
            assert answer.error["code"] == "E_PRECONDITION_FAILED" and b"allow" not in hook.ended()
    assert puppet.given() == []


def test_no_key_goes_to_the_next_dialog_though_nobody_reports_it(home: Home) -> None:
    puppet = Puppet(home, "one")
    home.start()
    puppet.wait_for("idle")
    with asking(home, puppet.pane, "touch x", waits=False):
        first = puppet.ask("d1", "touch x")
        # It is answered in its pane, and another opens.
        puppet.tell("ask d2 rm -r labels")
        wait_until(lambda: "rm -r labels" in (attention(home, puppet).get("detail") or ""), "the next question")
        second = home.panes()[puppet.pane]
        assert second["state_version"] > first["state_version"]
        for item in (first, second):
            assert approve(home, item, partial=True).error["code"] == "E_PRECONDITION_FAILED"
    assert puppet.given() == []


def test_an_answer_may_come_before_its_dialog_has_been_seen(home: Home) -> None:
    """As a script's does, which has waited for the state."""
    puppet = Puppet(home, "one")
    home.start()
    puppet.wait_for("idle")
    with asking(home, puppet.pane, "touch x", waits=False):
        wait_until(lambda: home.state_of(puppet.pane) == "waiting_approval", "what was reported")
        assert attention(home, puppet)["fingerprint"] is None
        puppet.tell("ask d1 touch x")
        done = home.run("approve", puppet.pane)
        assert (done.returncode, done.stdout) == (0, "approved: touch x\n"), done
    assert [(line["data"], line["dialog"]) for line in puppet.log() if line["what"] == "key"] == [("1", "d1")]


def test_an_answer_to_what_is_never_drawn_is_refused_and_goes_to_nothing_else(home: Home) -> None:
    puppet = Puppet(home, "one")
    home.start()
    puppet.wait_for("idle")
    with asking(home, puppet.pane, "touch x", waits=False):
        wait_until(lambda: home.state_of(puppet.pane) == "waiting_approval", "what was reported")
        item = home.panes()[puppet.pane]
        puppet.tell("ask d1 rm -r labels")
        assert approve(home, item).error["code"] == "E_PRECONDITION_FAILED"
    assert puppet.given() == []
