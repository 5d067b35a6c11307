"""Puppets in a home's panes: started, told what to do, and asked what they were given."""

from __future__ import annotations

import json
import os
import shlex
import socket
import sys
import uuid
from pathlib import Path
from typing import IO, Any

from support.asking import Spoken
from support.home import COMMANDS, Home, wait_until

PROGRAM = Path(__file__).with_name("puppet.py")


class Bridge(Spoken):
    """That of a puppet, greeted."""

    def __init__(self, asked: IO[str], told: IO[str]) -> None:
        super().__init__(asked, told)
        self.greet()

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """What it gives; raises AssertionError with what it says if it refuses."""
        result = super().call(tool, **arguments)
        assert not result.get("isError"), result["content"][0]["text"]
        return dict(result["structuredContent"])

    def refusal(self, tool: str, **arguments: Any) -> str:
        result = super().call(tool, **arguments)
        assert result.get("isError"), result
        return str(result["content"][0]["text"])


class Puppet:
    """One, in a pane of its own or typed into a shell."""

    def __init__(self, home: Home, name: str, *, in_shell: bool = False, width: int = 80) -> None:
        self.home = home
        self.name = name
        self.folder = home.folder
        self._runs = 0
        command = f'exec -a claude "{sys.executable}" "{PROGRAM}" {name} {home.folder}'
        if in_shell:
            self.pane = home.pane(agent=None, command="bash --norc")
            home.tmux("send-keys", "-t", self.pane, f"({command})", "Enter")
        else:
            self.pane = home.pane(agent=None, command=f"bash -c '{command}'")
        wait_until(lambda: any(line["what"] == "began" for line in self.log()), f"the puppet {name}")

    def tell(self, order: str) -> None:
        """Returns once the terminal shows what has come of it: a key that is pressed next comes after it."""
        number = uuid.uuid4().hex
        # One that ends answers nothing.
        words = order if order == "exit" else f"await {number} {order}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as strings:
            strings.sendto(words.encode(), str(self.folder / f"{self.name}.sock"))
        if order != "exit":
            wait_until(lambda: any(line["data"] == number for line in self.log()), f"{self.name} to show: {order}")

    def run(self, *words: str) -> str:
        """What a command prints that the agent itself runs, to its end."""
        self._runs += 1
        out = self.folder / f"{self.name}.{self._runs}.out"
        command = f'"{COMMANDS}/agtmux" {shlex.join(words)}' if words[0] != "sh" else words[2]
        self.tell(f"run {self._runs} {command}; echo; echo over $?")
        wait_until(lambda: out.exists() and "\nover " in out.read_text(), f"{words} of {self.name}")
        return out.read_text()

    def bridge(self) -> Bridge:
        """The MCP server that the agent has, as one is started by it."""
        self._runs += 1
        ways = [self.folder / f"{self.name}.{self._runs}.{end}" for end in ("asked", "told")]
        for way in ways:
            os.mkfifo(way)
        command = f'"{COMMANDS}/agtmux-mcp" --socket {self.home.socket}'
        self.tell(f"run {self._runs} {command} < {ways[0]} > {ways[1]}")
        return Bridge(ways[0].open("w"), ways[1].open())

    def log(self) -> list[dict[str, Any]]:
        try:
            text = (self.folder / f"{self.name}.log").read_bytes()
        except FileNotFoundError:
            return []
        # The last line may not be whole yet.
        return [json.loads(line) for line in text[: text.rfind(b"\n") + 1].splitlines()]

    def given(self) -> list[tuple[str, str]]:
        """Keys and pastes, in order."""
        return [(line["what"], line["data"]) for line in self.log() if line["what"] in ("key", "paste")]

    def submitted(self) -> list[str]:
        return [line["data"] for line in self.log() if line["what"] == "submit"]

    def wait_for(self, state: str) -> dict[str, Any]:
        """Its item, once it is shown in that state."""
        wait_until(lambda: self.home.state_of(self.pane) == state, f"{state} of {self.name}")
        return self.home.panes()[self.pane]

    def ask(self, dialog_id: str, text: str) -> dict[str, Any]:
        """Opens a dialog; returns once it is known."""
        self.tell(f"ask {dialog_id} {text}")

        def is_known() -> bool:
            attention = self.home.panes()[self.pane]["attention"]
            return attention is not None and text in attention["summary"] and attention["fingerprint"] is not None

        self.wait_for("waiting_approval")
        wait_until(is_known, f"the dialog {dialog_id}")
        return self.home.panes()[self.pane]
