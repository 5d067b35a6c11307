"""Every endpoint that takes a pane takes every form of one that the help, the documents and the errors name."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from agtmux.api.actions import ACTIONS
from support.home import Home, home_in, wait_until

# What is asked of each action beside its ref, so that it does no harm; it may be refused, but not over its ref.
ACTION_BODIES: dict[str, dict[str, Any]] = {
    "attach": {"only_print": True},
    "send": {"key": "C-l"},
    "view-output": {"lines": 5},
    "kill": {"if_state_version": 987_654_321},
    "stop": {"if_state_version": 987_654_321},
    "approve": {"if_dialog": "0" * 8},
    "deny": {"if_dialog": "0" * 8},
}
READS = ("/v1/preview?ref=", "/v1/explain?ref=", "/v1/actions?ref=", "/v1/conversations?ref=")
MESSAGES = ("/v1/conversations/messages?ref=",)
FORMS = ("ref", "runtime", "number", "target/number", "name", "as shown", "as shown, encoded")


def forms(item: dict[str, Any]) -> dict[str, str]:
    identity = item["identity"]
    return {
        "ref": item["ref"],
        "runtime": f"runtime:{item['runtime_id']}",
        "number": identity["pane_id"],
        "target/number": f"{identity['target']}/{identity['pane_id']}",
        "name": item["name"],
        "as shown": "/".join(identity[part] for part in ("target", "session_name", "window_id", "pane_id")),
        "as shown, encoded": item["ref"].removeprefix("pane:"),
    }


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Home, dict[str, Any]]]:
    with home_in(tmp_path_factory.mktemp("r")) as home:
        # A session whose name has to be encoded.
        home.tmux("new-session", "-d", "-s", "two words", "sleep 3600")
        pane = home.tmux("display-message", "-p", "-t", "two words", "#{pane_id}").strip()
        home.tmux("set-option", "-p", "-t", pane, "@agtmux_agent", "claude")
        home.start()
        wait_until(lambda: home.panes().get(pane, {}).get("agent_type") == "claude", "the pane")
        yield home, home.panes()[pane]


def test_every_action_has_a_body_here() -> None:
    assert set(ACTION_BODIES) == set(ACTIONS) and set(FORMS) == set(forms(_AN_ITEM))


@pytest.mark.parametrize("form", FORMS)
def test_every_endpoint_takes_it(stage: tuple[Home, dict[str, Any]], form: str) -> None:
    """Requirements review, bug 6."""
    home, item = stage
    ref = forms(item)[form]
    for action, more in ACTION_BODIES.items():
        told = home.ask("POST", f"/v1/actions/{action}", {"ref": ref, "request_ref": uuid.uuid4().hex, **more})
        if told.status == 200:
            assert told.json["pane_id"] == item["identity"]["pane_id"], (action, told.json)
        else:
            assert not told.json["error"]["code"].startswith("E_REF"), (action, told.json)
    for path in (*READS, *MESSAGES):
        told = home.ask("GET", path + quote(ref, safe=""))
        assert told.status == 200, (path, told.json)
    sent = home.ask("POST", "/v1/messages", {"to": ref, "content": "hello"})
    assert sent.status == 200 and sent.json["items"][0]["to_runtime"] == item["runtime_id"], sent.json
    for name in ("with", "to"):
        listed = home.ask("GET", f"/v1/messages?{name}={quote(ref, safe='')}").json["items"]
        assert any(each["message_id"] == sent.json["items"][0]["message_id"] for each in listed), name


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("%987", "E_REF_NOT_FOUND"),
        ("host/%987", "E_REF_NOT_FOUND"),
        ("vm9/%0", "E_REF_NOT_FOUND"),
        ("host/nowhere/@1/%987", "E_REF_NOT_FOUND"),
        ("pane:host/%/@1/%1", "E_REF_INVALID_ENCODING"),
        ("", "E_REF_INVALID"),
        ("%", "E_REF_INVALID"),
        ("runtime:short", "E_REF_INVALID"),
    ],
)
def test_what_is_nowhere_is_refused_alike_everywhere(stage: tuple[Home, dict[str, Any]], text: str, code: str) -> None:
    home, _ = stage
    for action, more in ACTION_BODIES.items():
        told = home.ask("POST", f"/v1/actions/{action}", {"ref": text, "request_ref": uuid.uuid4().hex, **more})
        assert told.json["error"]["code"] == code, (action, told.json)
    for path in READS[:2]:
        assert home.ask("GET", path + quote(text, safe="")).json["error"]["code"] == code, path


_AN_ITEM: dict[str, Any] = {
    "ref": "pane:host/a/@1/%1",
    "runtime_id": "x" * 16,
    "name": "claude-1",
    "identity": dict(zip(("target", "session_name", "window_id", "pane_id"), itertools.repeat("x"), strict=False)),
}
