"""Who asks through a bridge, as an agent does: a process of the test's own, or one in a pane, over and over."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

GREETING = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "0"}}

# Asks through a bridge of its own, from within a pane, and leaves what it heard in a file.
SCRIPT = """
import json, os, subprocess, time
bridge = subprocess.Popen({command!r}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
def ask(number, method, params):
    bridge.stdin.write(json.dumps({{"jsonrpc": "2.0", "id": number, "method": method, "params": params}}) + "\\n")
    bridge.stdin.flush()
    return json.loads(bridge.stdout.readline())
ask(1, "initialize", {greeting!r})
number = 1
while True:
    number += 1
    heard = ask(number, "tools/call", {call!r})
    with open({path!r} + ".new", "w") as file:
        json.dump({{"number": number, **heard["result"]}}, file)
    os.replace({path!r} + ".new", {path!r})
    time.sleep({pause})
"""


class Asker:
    """What somebody in a pane hears, who calls one tool over and over."""

    def __init__(
        self,
        folder: Path,
        name: str,
        command: Sequence[str],
        pause: float = 0.1,
        tool: str = "list_agents",
        **more: Any,
    ) -> None:
        self.path = folder / f"{name}.json"
        self.script = folder / f"{name}.py"
        asked = {"name": tool, "arguments": {}, **more}
        text = SCRIPT.format(command=list(command), greeting=GREETING, path=str(self.path), call=asked, pause=pause)
        self.script.write_text(text)
        # For sh, in the pane.
        # In double quotes: it stands within single ones.
        self.command = f'"{sys.executable}" "{self.script}"'

    def heard(self) -> dict[str, Any]:
        return json.loads(self.path.read_text()) if self.path.exists() else {}

    @property
    def told(self) -> dict[str, Any]:
        return dict(self.heard().get("structuredContent") or {})

    @property
    def you(self) -> dict[str, Any]:
        return dict(self.told.get("you") or {})


class Spoken:
    """A bridge, spoken to line by line."""

    def __init__(self, asked: IO[str], told: IO[str]) -> None:
        self._asked = asked
        self._told = told
        self._next = 0

    def send(self, method: str, **params: Any) -> None:
        self._next += 1
        self.write({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})

    def write(self, message: Any) -> None:
        self._asked.write(json.dumps(message) + "\n")
        self._asked.flush()

    def read(self) -> Any:
        return json.loads(self._told.readline())

    def ask(self, method: str, **params: Any) -> Any:
        self.send(method, **params)
        return self.read()

    def greet(self) -> Any:
        answer = self.ask("initialize", **GREETING)
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def call(self, tool: str, **arguments: Any) -> Any:
        return self.ask("tools/call", name=tool, arguments=arguments)["result"]

    def close(self) -> None:
        self._asked.close()
        self._told.close()


class BridgeProcess(Spoken):
    """One of the test's own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None and process.stdout is not None
        super().__init__(process.stdin, process.stdout)
        self.process = process

    @classmethod
    def started(cls, command: Sequence[str], env: Mapping[str, str]) -> BridgeProcess:
        pipe = subprocess.PIPE
        return cls(subprocess.Popen(command, env=dict(env), stdin=pipe, stdout=pipe, stderr=pipe, text=True))

    def end(self) -> tuple[int, str]:
        _, complaints = self.process.communicate(timeout=20)
        return self.process.returncode, complaints

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
