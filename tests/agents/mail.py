"""Messages to real agents: sent by the command, and counted by what the model was told, never by what agtmux says."""

from __future__ import annotations

import json
from typing import Any

from agents.driven import PATIENCE, TARGET, Driven
from support.home import wait_until


class Letterbox:
    """Of the one agent there is."""

    def __init__(self, its: Driven) -> None:
        assert its.home is not None
        self.its = its
        self.home = its.home
        pane = its.pane.format("#{pane_id}")
        self.name = f"{its.agent.NAME}-{pane.removeprefix('%')}@{TARGET}"

    def send(self, text: str, *more: str) -> dict[str, Any]:
        done = self.home.run("message", "send", self.name, text, *more, "--json")
        assert done.returncode == 0, f"{done}\n{self.its.pane.screen()}"
        sent = dict(json.loads(done.stdout)["items"][0])
        print(f"{self.name} {more} {text[:20]!r}: {sent['status']} {sent['reason']} {sent['duration_ms']}")
        return sent

    def find(self, message: dict[str, Any]) -> dict[str, Any]:
        return dict(self.home.ask("GET", f"/v1/messages?message_id={message['message_id']}").json["items"][0])

    def told(self, message: dict[str, Any]) -> int:
        """How often the model has it before it now, with its sender in front."""
        wanted = f"[agtmux msg from {message['from_agent']}]: {message['content']}"
        return heard(self.its).count(json.dumps(wanted, ensure_ascii=False)[1:-1])

    def arrives(self, message: dict[str, Any]) -> None:
        """By itself, and typed."""

        def is_delivered() -> bool:
            return str(self.find(message)["status"]) == "delivered"

        try:
            wait_until(is_delivered, "its delivery", PATIENCE)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.find(message)}\n{self.its.pane.screen()}") from None
        assert self.find(message)["via"] == "typed"
        self.its.pane.wait_until(lambda: self.told(message), "the message at the model")

    def came_once(self, *messages: dict[str, Any]) -> None:
        """Also after another turn, which would bring whatever was left in the prompt or in a queue."""
        self.rests()
        self.its.say("Is there more?")
        self.rests()
        assert [self.told(each) for each in messages] == [1] * len(messages), heard(self.its)[-3000:]
        assert [self.find(each)["status"] for each in messages] == ["delivered"] * len(messages)

    def rests(self) -> None:
        self.its.pane.wait_until(lambda: not self.its.pane.server.busy, "the end of the turn")
        self.its.expect("completed", "idle")
        self.its.pane.settle()


def heard(its: Driven) -> str:
    """All that the model has before it."""
    return json.dumps([each.body for each in its.pane.server.main[-1:]], ensure_ascii=False)
